package runtime

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// A cap cannot be exceeded by a race.
func TestACapHolds(t *testing.T) {
	t.Parallel()
	const admissions, workers, most = 10_048, 64, 7
	rt, err := New(Config{Admission: Admission{MaxSessions: most, Groups: map[string]int{"g0": 2}}})
	require.NoError(t, err)
	var live, peak, inGroup, peakGroup atomic.Int64
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for n := range admissions / workers {
				ctx := WithAdmission(t.Context(), AdmissionRequest{Group: fmt.Sprint("g", w%4), Priority: n % 3})
				place, err := rt.admission.enter(ctx, &wait{})
				if !assert.NoError(t, err) {
					return
				}
				higher(&peak, live.Add(1))
				if w%4 == 0 {
					higher(&peakGroup, inGroup.Add(1))
					inGroup.Add(-1)
				}
				live.Add(-1)
				rt.admission.leave(place)
			}
		})
	}
	all.Wait()
	assert.LessOrEqual(t, peak.Load(), int64(most))
	assert.LessOrEqual(t, peakGroup.Load(), int64(2))
	s := rt.AdmissionStat()
	assert.EqualValues(t, admissions/workers*workers, s.Admitted)
	assert.Zero(t, s.Live)
	assert.Zero(t, s.Queued)
	assert.Empty(t, s.ByGroup)
	require.NoError(t, rt.Shutdown(t.Context()))
}

func higher(peak *atomic.Int64, n int64) {
	for {
		p := peak.Load()
		if n <= p || peak.CompareAndSwap(p, n) {
			return
		}
	}
}

// In any order of events: no cap is exceeded, no session waits while there is room, and
// a higher priority is never passed over by a lower one of the same group.
func TestTheQueue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limits := Admission{
			MaxSessions: rapid.IntRange(0, 5).Draw(t, "most"), Groups: map[string]int{"a": rapid.IntRange(0, 2).Draw(t, "a")},
			StartsPerSecond: rapid.SampledFrom([]float64{0, 0, 10}).Draw(t, "rate"),
		}
		q := queue{limits: limits, byGroup: map[string]int{}, rand: kernel.NewRand(nil)}
		now, wake := time.Unix(100, 0), time.Time{}
		var live, waiting []*ticket
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			var admitted []*ticket
			switch what := rapid.IntRange(0, 3).Draw(t, "what"); {
			case what <= 1:
				k := &ticket{AdmissionRequest: AdmissionRequest{Group: rapid.SampledFrom([]string{"a", "b", ""}).Draw(t, "group"), Priority: rapid.IntRange(0, 2).Draw(t, "priority")}}
				k.admit = func() { admitted = append(admitted, k) }
				waiting = append(waiting, k)
				for _, w := range waiting {
					w.admit = func() { admitted = append(admitted, w) }
				}
				wake = q.ask(now, k)
			case what == 2 && len(live)+len(waiting) > 0:
				all := append(append([]*ticket{}, live...), waiting...)
				k := rapid.SampledFrom(all).Draw(t, "leaves")
				live, waiting = without(live, k), without(waiting, k)
				for _, w := range waiting {
					w.admit = func() { admitted = append(admitted, w) }
				}
				wake = q.leave(now, k)
			case !wake.IsZero():
				for _, w := range waiting {
					w.admit = func() { admitted = append(admitted, w) }
				}
				now = wake
				wake = q.settle(now)
			}
			for _, k := range admitted {
				waiting = without(waiting, k)
				live = append(live, k)
				for _, w := range waiting {
					require.False(t, w.Group == k.Group && w.Priority > k.Priority, "a lower priority came first")
				}
			}
			count := map[string]int{}
			for _, k := range live {
				count[k.Group]++
			}
			require.Len(t, live, q.live)
			require.True(t, limits.MaxSessions == 0 || len(live) <= limits.MaxSessions)
			require.True(t, limits.Groups["a"] == 0 || count["a"] <= limits.Groups["a"])
			if wake.IsZero() && (limits.MaxSessions == 0 || len(live) < limits.MaxSessions) {
				for _, w := range waiting {
					require.True(t, w.Group == "a" && limits.Groups["a"] > 0 && count["a"] == limits.Groups["a"], "it waits although there is room")
				}
			}
		}
	})
}

func without(all []*ticket, k *ticket) []*ticket {
	var rest []*ticket
	for _, o := range all {
		if o != k {
			rest = append(rest, o)
		}
	}
	return rest
}

// The first starts come more slowly, and none faster than the limit.
func TestStartsPerSecond(t *testing.T) {
	t.Parallel()
	q := queue{limits: Admission{StartsPerSecond: 10}, byGroup: map[string]int{}, rand: kernel.NewRand(nil)}
	now := time.Unix(0, 0)
	var at []time.Duration
	var wake time.Time
	for range 12 {
		wake = q.ask(now, &ticket{admit: func() { at = append(at, now.Sub(time.Unix(0, 0))) }})
	}
	for !wake.IsZero() {
		now = wake
		wake = q.settle(now)
	}
	require.Len(t, at, 12)
	assert.Zero(t, at[0])
	early := 0
	for i, due := range []time.Duration{400 * time.Millisecond, 290 * time.Millisecond, 228 * time.Millisecond} { // a quarter of the rate, then more
		pause := at[i+1] - at[i]
		assert.GreaterOrEqual(t, pause, due)
		assert.LessOrEqual(t, pause, due+due/4+time.Millisecond)
		if pause == due {
			early++
		}
	}
	assert.Less(t, early, 2, "they come later by chance")
	assert.Equal(t, 100*time.Millisecond, at[11]-at[10])
}

func TestGivingUpTheQueue(t *testing.T) {
	t.Parallel()
	rt, err := New(Config{Admission: Admission{MaxSessions: 1, MaxWait: 20 * time.Millisecond}})
	require.NoError(t, err)
	place, err := rt.admission.enter(t.Context(), &wait{})
	require.NoError(t, err)
	_, err = rt.admission.enter(t.Context(), &wait{})
	var late *session.TimeoutError
	require.ErrorAs(t, err, &late)
	assert.Equal(t, "Admission.MaxWait", late.SetBy)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = rt.admission.enter(ended, &wait{})
	require.ErrorIs(t, err, context.Canceled)
	assert.EqualValues(t, 2, rt.AdmissionStat().GaveUp)
	assert.Zero(t, rt.AdmissionStat().Queued)
	rt.admission.leave(place)
	place, err = rt.admission.enter(t.Context(), &wait{})
	require.NoError(t, err)
	rt.admission.queue.limits.MaxWait = 0
	refused := kernel.NewPromise[struct{}]()
	rt.sys.Executor().Go(func() {
		_, err := rt.admission.enter(context.Background(), &wait{})
		refused.Fail(err)
	})
	for rt.AdmissionStat().Queued == 0 {
		time.Sleep(time.Millisecond)
	}
	require.NoError(t, rt.Shutdown(t.Context()))
	_, err = refused.Wait(t.Context(), rt.sys.Executor())
	require.ErrorIs(t, err, session.ErrShutdown)
	rt.admission.leave(place)
	_, err = New(Config{Admission: Admission{MaxSessions: -1}})
	require.Len(t, session.ConfigErrors(err), 1)
}

// Of equal priorities the group with the fewest sessions comes first, and in a group the one
// that came first.
func TestTheGroupWithTheFewestComesFirst(t *testing.T) {
	t.Parallel()
	q := queue{limits: Admission{MaxSessions: 3}, byGroup: map[string]int{}, rand: kernel.NewRand(nil)}
	var admitted []string
	now := time.Unix(100, 0)
	ask := func(name, group string, priority int) *ticket {
		k := &ticket{AdmissionRequest: AdmissionRequest{Group: group, Priority: priority}}
		k.admit = func() { admitted = append(admitted, name) }
		q.ask(now, k)
		return k
	}
	a1, a2 := ask("a1", "a", 0), ask("a2", "a", 0)
	b1 := ask("b1", "b", 0)
	require.Equal(t, []string{"a1", "a2", "b1"}, admitted)
	for _, k := range []struct{ name, group string }{{"a3", "a"}, {"a4", "a"}, {"b2", "b"}, {"c1", "c"}} {
		ask(k.name, k.group, 0)
	}
	q.leave(now, b1) // two of a are there
	q.leave(now, a1)
	q.leave(now, a2)
	require.Equal(t, []string{"b2", "c1", "a3"}, admitted[3:])
}
