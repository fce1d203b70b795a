package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// The time of a job is that in which attempts ran, of all hosts, and each instant counts once.
func TestTimeOfAJob(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	ran := func(from, to int) Attempt {
		return Attempt{Started: at.Add(time.Duration(from) * time.Minute), Ended: at.Add(time.Duration(to) * time.Minute)}
	}
	began, total := timeOf(nil)
	assert.True(t, began.IsZero())
	assert.Zero(t, total)
	began, total = timeOf([]Attempt{ran(60, 70), ran(0, 10), ran(5, 20), ran(6, 8), {}, ran(70, 71)})
	assert.Equal(t, at, began)
	assert.Equal(t, Duration(31*time.Minute), total)
}

// A column stands in the table if a row has something in it.
func TestColumns(t *testing.T) {
	t.Parallel()
	assert.Equal(t, columns{Grid: "minmax(8rem,2fr) 7rem 4fr"}, columnsOf([]*TaskResult{{Attempts: make([]Attempt, 1), Verdict: &Verdict{}}}))
	assert.Equal(t, columns{Grid: "minmax(8rem,2fr) 7rem 5rem 5rem 5rem 5rem 5rem 5rem 4fr", Time: true, Cost: true, Tries: true, Requeued: true, Rounds: true, Denied: true},
		columnsOf([]*TaskResult{{Attempts: make([]Attempt, 2), Usage: Usage{Credits: 1, Wall: 1}}, {Requeued: 1, Denied: 1, Verdict: &Verdict{Rounds: 1}}}))
}
