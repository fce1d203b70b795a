package fleet_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
)

// slow is an agent that works for a minute.
func slow() *sdk.Options {
	return &sdk.Options{Backend: scripted.New(scripted.WithScript(&scripted.Script{
		Default: scripted.Steps{scripted.Delay(time.Minute), scripted.Text("done")},
	}))}
}

// A task that is not due takes no place of the job: the others run, one after another, and
// a task that comes after it waits with it.
func TestATaskThatIsNotDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		night := began.Add(6 * time.Hour)
		all := tasks(5)
		all[0].NotBefore = night
		all[1].After = []string{all[0].ID}
		all[2].NotBefore = began.Add(-time.Hour)
		results, err := collect(t, fleet.Job{Tasks: all, Concurrency: 1, Options: private(t, slow())})
		require.NoError(t, err)
		require.Len(t, results, len(all))
		started := map[string]time.Duration{}
		for id, r := range results {
			require.Equal(t, fleet.Accepted, r.Status, id)
			started[id] = r.Attempts[0].Started.Sub(began).Truncate(time.Minute)
		}
		assert.Equal(t, map[string]time.Duration{"t2": 0, "t3": time.Minute, "t4": 2 * time.Minute, "t0": 6 * time.Hour, "t1": 6*time.Hour + time.Minute}, started)
	})
}

// A job whose tasks are not due can be ended at once, and each is left for another run.
func TestAJobOfTasksThatAreNotDueCanBeEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		all := tasks(2)
		all[0].NotBefore, all[1].NotBefore = began.Add(time.Hour), began.Add(time.Hour)
		h, err := fleet.Start(t.Context(), fleet.Job{Tasks: all, Options: private(t, slow())})
		require.NoError(t, err)
		synctest.Wait()
		h.Drain()
		var stopped *fleet.StoppedError
		for r, err := range h.Results(t.Context()) {
			require.ErrorAs(t, err, &stopped, "%s", r.ID)
		}
		require.NotNil(t, stopped)
		assert.Equal(t, fleet.StopDrained, stopped.Reason)
		assert.Equal(t, 2, stopped.Left)
		assert.Less(t, time.Since(began), time.Minute)
	})
}

// Jobs that share a runtime share its limits by labels.
func TestTasksAreLimitedByTheirLabels(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		heavy := map[string]string{"size": "large"}
		rt, err := runtime.New(runtime.Config{Admission: runtime.Admission{Labels: []runtime.LabelLimit{{Labels: heavy, Max: 1}}}})
		require.NoError(t, err)
		defer func() { require.NoError(t, rt.Shutdown(context.Background())) }()
		began := time.Now()
		ends := make(chan map[string]time.Duration)
		for range 2 {
			all := tasks(3)
			all[0].Labels, all[1].Labels = heavy, heavy
			o := slow()
			o.Runtime = rt
			go func() {
				took := map[string]time.Duration{}
				for r, err := range fleet.Run(t.Context(), fleet.Job{Tasks: all, Concurrency: 3, Options: o}) {
					if assert.NoError(t, err) {
						took[r.ID] = r.Attempts[0].Ended.Sub(began).Truncate(time.Minute)
					}
				}
				ends <- took
			}()
		}
		one, two := <-ends, <-ends
		assert.Equal(t, time.Minute, one["t2"], "it has no labels")
		assert.Equal(t, time.Minute, two["t2"])
		assert.ElementsMatch(t, []time.Duration{1 * time.Minute, 2 * time.Minute, 3 * time.Minute, 4 * time.Minute},
			[]time.Duration{one["t0"], one["t1"], two["t0"], two["t1"]}, "one of them at a time")
	})
}

// An account takes so many starts in a second, of all jobs of a runtime.
func TestTheStartsOfAnAccountAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rt, err := runtime.New(runtime.Config{Admission: runtime.Admission{Labels: []runtime.LabelLimit{
			{Labels: map[string]string{"account": "work", "agent": "scripted"}, StartsPerSecond: 0.1},
		}}})
		require.NoError(t, err)
		defer func() { require.NoError(t, rt.Shutdown(context.Background())) }()
		began := time.Now()
		var ends []time.Duration
		for _, account := range []string{"work", "play"} {
			o := slow()
			o.Runtime = rt
			for r, err := range fleet.Run(t.Context(), fleet.Job{Tasks: tasks(3), Concurrency: 3, Options: o, Account: account}) {
				require.NoError(t, err)
				ends = append(ends, r.Attempts[0].Ended.Sub(began).Round(time.Second))
			}
			slices.Sort(ends)
		}
		assert.Equal(t, []time.Duration{60 * time.Second, 70 * time.Second, 80 * time.Second, 140 * time.Second, 140 * time.Second, 140 * time.Second}, ends)
	})
}
