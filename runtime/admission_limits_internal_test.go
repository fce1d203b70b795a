package runtime

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agent-troupe/troupe/session"
)

// In any order of events and measurements: no cap for labels is exceeded, nothing starts
// before its time or on a full machine, and no session waits without a reason.
func TestTheQueueWithLimits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		machine := HostUsage{FreeDisk: 100}
		limits := Admission{
			MaxMemory: 1000, MemoryEach: 100, MinFreeDisk: 50, Measure: func() HostUsage { return machine },
			Labels: []LabelLimit{
				{Labels: map[string]string{"model": "big"}, Max: rapid.IntRange(1, 3).Draw(t, "big")},
				{Labels: map[string]string{"model": "big", "team": "a"}, Max: 1},
				{Labels: map[string]string{"team": "b"}, StartsPerSecond: 2},
			},
		}
		start := time.Unix(1000, 0)
		q, now, wake := queue{limits: limits, byGroup: map[string]int{}}, start, time.Time{}
		var live, waiting, admitted []*ticket
		var last time.Time // a start of team b
		for n := range rapid.IntRange(1, 60).Draw(t, "steps") {
			admitted = nil
			switch what := rapid.IntRange(0, 5).Draw(t, "what"); {
			case what <= 1:
				k := &ticket{AdmissionRequest: AdmissionRequest{
					Labels:    map[string]string{"model": rapid.SampledFrom([]string{"big", "small"}).Draw(t, "model"), "team": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "team")},
					NotBefore: rapid.SampledFrom([]time.Time{{}, now.Add(3 * time.Second)}).Draw(t, "not before"),
				}}
				k.admit = func() { admitted = append(admitted, k) }
				waiting = append(waiting, k)
				wake = q.ask(now, k)
			case what == 2 && len(live) > 0:
				k := live[0]
				live = live[1:]
				wake = q.leave(now, k)
			case what == 3:
				machine = HostUsage{Memory: rapid.Int64Range(0, 1200).Draw(t, "memory"), FreeDisk: rapid.SampledFrom([]int64{10, 100}).Draw(t, "disk")}
			case !wake.IsZero():
				require.True(t, wake.After(now), "it looks again without an end")
				now = wake
				wake = q.settle(now)
			}
			for _, k := range admitted {
				waiting, live = without(waiting, k), append(live, k)
				require.False(t, now.Before(k.NotBefore), "it started too early")
				require.GreaterOrEqual(t, q.machine.FreeDisk, int64(50))
				if k.Labels["team"] == "b" {
					require.GreaterOrEqual(t, now.Sub(last), 500*time.Millisecond, "it started too fast")
					last = now
				}
			}
			if len(admitted) > 1 || len(live) > 1 && len(admitted) > 0 {
				require.LessOrEqual(t, q.machine.Memory+100*int64(len(q.recent)), int64(1000), "step %d", n)
			}
			big, both := 0, 0
			for _, k := range live {
				if k.Labels["model"] == "big" {
					big++
					if k.Labels["team"] == "a" {
						both++
					}
				}
			}
			require.LessOrEqual(t, big, limits.Labels[0].Max)
			require.LessOrEqual(t, both, 1)
			if wake.IsZero() {
				for _, w := range waiting {
					require.True(t, w.Labels["model"] == "big" && (big == limits.Labels[0].Max || w.Labels["team"] == "a" && both == 1), "it waits although there is room")
				}
			}
		}
	})
}

// A machine that is full holds sessions up until it has room, and is measured once a second.
func TestAFullMachine(t *testing.T) {
	t.Parallel()
	measured := 0
	machine := HostUsage{Memory: 5000}
	q := queue{byGroup: map[string]int{}, limits: Admission{MaxMemory: 1000, MemoryEach: 300, Measure: func() HostUsage { measured++; return machine }}}
	now, admitted := time.Unix(0, 0), 0
	var wake time.Time
	for range 5 {
		wake = q.ask(now, &ticket{admit: func() { admitted++ }})
	}
	assert.Equal(t, 1, admitted, "one always starts")
	assert.Equal(t, 1, measured)
	assert.Equal(t, now.Add(time.Second), wake)
	machine.Memory = 300 // the one that runs
	now = wake
	q.settle(now)
	assert.Equal(t, 2, admitted, "each of them will grow")
	now = now.Add(20 * time.Second)
	machine.Memory = 100
	wake = q.settle(now)
	assert.Equal(t, 5, admitted)
	assert.True(t, wake.IsZero())
}

func TestNotBeforeAlone(t *testing.T) {
	t.Parallel()
	rt, err := New(Config{})
	require.NoError(t, err)
	begun := rt.Clock().Now()
	place, err := rt.admission.enter(WithAdmission(t.Context(), AdmissionRequest{NotBefore: begun.Add(50 * time.Millisecond)}), &wait{})
	require.NoError(t, err)
	assert.GreaterOrEqual(t, rt.Clock().Now().Sub(begun), 50*time.Millisecond)
	rt.admission.leave(place)
	require.NoError(t, rt.Shutdown(t.Context()))
	for _, a := range []Admission{{MaxMemory: -1}, {Labels: []LabelLimit{{Max: 1}}}, {Labels: []LabelLimit{{Labels: map[string]string{"a": "b"}}}}} {
		_, err = New(Config{Admission: a})
		require.Len(t, session.ConfigErrors(err), 1)
	}
}
