package runtime

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestThePastOfAnAccount has work over time, and when the machine was starved.
func TestThePastOfAnAccount(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now := began
	a := &Account{past: accountPast{clock: func() time.Time { return now }}}
	m := a.Join(now, nil, nil)
	work := func() (all []string) {
		for _, w := range a.Stat().Work {
			all = append(all, fmt.Sprintf("%v:%d", w.At.Sub(began), w.Working))
		}
		return all
	}
	assert.NotNil(t, a.Stat().Work)
	assert.Empty(t, work())
	m.Enter(now, "a")
	now = now.Add(time.Minute)
	m.Enter(now, "b")
	assert.Equal(t, []string{"0s:1", "1m0s:2"}, work())
	for i := range 5 { // many changes in little time
		now = now.Add(500 * time.Millisecond)
		m.Enter(now, fmt.Sprint(i))
	}
	for i := range 5 {
		now = now.Add(100 * time.Millisecond)
		m.End(now, fmt.Sprint(i), true)
	}
	got := work()
	assert.LessOrEqual(t, len(got), 4, "they share entries")
	assert.Contains(t, fmt.Sprint(got), ":7", "the highest number is kept")
	assert.Equal(t, ":2", got[len(got)-1][len(got[len(got)-1])-2:], "and the last")
	m.Starved(true)
	m.Starved(true)
	now = now.Add(time.Minute)
	assert.Equal(t, []AccountStarved{{From: now.Add(-time.Minute)}}, a.Stat().Starvation)
	m.Starved(false)
	assert.Equal(t, []AccountStarved{{From: now.Add(-time.Minute), To: now}}, a.Stat().Starvation)
	m.Starved(true)
	m.Leave()
	assert.Len(t, a.Stat().Starvation, 2)
	assert.False(t, a.Stat().Starvation[1].To.IsZero(), "a job that leaves is not starved")
	assert.Zero(t, a.Stat().Work[len(a.Stat().Work)-1].Working)
	for i := range 2000 {
		now = now.Add(time.Minute)
		a.past.worked(i)
		a.past.starves(i%2 == 0)
	}
	assert.LessOrEqual(t, len(a.Stat().Work), maxWork)
	assert.Len(t, a.Stat().Starvation, maxStarved)

	alone := &Account{}
	o := alone.Join(now, nil, nil)
	o.Enter(now, "a")
	o.Starved(true)
	assert.Empty(t, alone.Stat().Work, "it has no clock")
	assert.Empty(t, alone.Stat().Starvation)
}
