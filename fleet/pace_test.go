package fleet_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/journal/journaltest"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
)

// private is a runtime of a bubble: nothing may cross them.
func private(t *testing.T, o *sdk.Options) *sdk.Options {
	t.Helper()
	rt, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Shutdown(context.Background())) })
	o.Runtime = rt
	return o
}

// spent is an agent whose account has nothing left until then.
func spent(until time.Time, history *scripted.MemoryHistory, before ...scripted.Step) sdk.Backend {
	text := "You've hit your session limit"
	return scripted.New(scripted.WithScript(&scripted.Script{Transcript: true, Default: append(before,
		&scripted.Message{Fields: map[string]any{"type": "rate_limit_event", "rate_limit_info": map[string]any{"status": "rejected", "resetsAt": until.Unix()}}},
		&scripted.Result{Subtype: "success", IsError: new(true), Text: &text, APIErrorStatus: 429, Fields: map[string]any{"api_error": "usage_limit_reached"}},
	)}), scripted.WithHistory(history))
}

// A spent window stops nothing: the job waits for the next one, one task finds out for
// all, and each has its result. A program that is ended meanwhile waits on when it resumes.
func TestASpentWindow(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		began, history := time.Now(), &scripted.MemoryHistory{}
		reset := began.Add(5 * time.Hour)
		var starts []time.Duration
		var events []string
		job := fleet.Job{
			Tasks: tasks(8), Concurrency: 3, Out: out, Options: private(t, &sdk.Options{Backend: spent(reset, history)}),
			Configure: func(_ context.Context, _ *fleet.Task, o *sdk.Options) error {
				if !time.Now().Before(reset) {
					o.Backend = scripted.New(scripted.WithScript(&scripted.Script{Transcript: true, Default: scripted.Steps{scripted.Delay(time.Minute), scripted.Text("done")}}), scripted.WithHistory(history))
				}
				return nil
			},
			OnEvent: func(e fleet.Event) {
				switch e.Kind {
				case fleet.EventStarted:
					starts = append(starts, e.At.Sub(began).Truncate(time.Minute))
				case fleet.EventParked, fleet.EventUnparked:
					events = append(events, string(e.Kind))
				}
			},
		}
		h, err := fleet.Start(t.Context(), job)
		require.NoError(t, err)
		time.Sleep(time.Hour)
		p := h.Progress()
		require.WithinRange(t, p.Parked, reset, reset.Add(time.Minute))
		require.Empty(t, p.Running)
		require.Len(t, starts, 3)
		h.Cancel() // the program ends
		for _, err := range h.Results(t.Context()) {
			require.ErrorAs(t, err, new(*fleet.StoppedError))
		}
		require.Equal(t, []string{"parked"}, events)

		job.Resume, starts, events = true, nil, nil
		job.Options = private(t, &sdk.Options{Backend: spent(reset, history)})
		h, err = fleet.Start(t.Context(), job) // the next one ends, too, after it has compacted the journal
		require.NoError(t, err)
		time.Sleep(time.Hour)
		require.WithinRange(t, h.Progress().Parked, reset, reset.Add(time.Minute))
		h.Cancel()
		for _, err := range h.Results(t.Context()) {
			require.ErrorAs(t, err, new(*fleet.StoppedError))
		}
		require.Empty(t, starts)

		job.Options = private(t, &sdk.Options{Backend: spent(reset, history)})
		results, err := collect(t, job)
		require.NoError(t, err)
		require.Len(t, results, 8)
		for id, r := range results {
			assert.Equal(t, fleet.Accepted, r.Status, "%s: %s", id, r.Error)
			for _, a := range r.Attempts[:len(r.Attempts)-1] {
				assert.Equal(t, fleet.UsageLimit, a.Status)
			}
		}
		require.Equal(t, []string{"unparked"}, events)
		require.Len(t, starts, 8)
		require.GreaterOrEqual(t, starts[0], 5*time.Hour)
		require.GreaterOrEqual(t, starts[1], starts[0]+time.Minute, "one finds out for all")
		require.LessOrEqual(t, starts[3], starts[1]+time.Minute, "the others follow at once")
		require.Less(t, time.Since(began), 5*time.Hour+10*time.Minute)
	})
}

// MaxPark: a wait that is too long stops the job, which can be resumed.
func TestAWindowThatIsTooFar(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		job := fleet.Job{Tasks: tasks(4), MaxPark: time.Hour, Options: private(t, &sdk.Options{Backend: spent(time.Now().Add(2*time.Hour), &scripted.MemoryHistory{})})}
		_, err := collect(t, job)
		var stopped *fleet.StoppedError
		require.ErrorAs(t, err, &stopped)
		require.Equal(t, fleet.StopUsageLimit, stopped.Reason)
		require.Contains(t, stopped.Detail, "2h")
	})
}

// An API that takes ten agents at a time: the pace finds out how many, and none fails.
func TestThePaceOfAnAPI(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		const takes = 10
		began := time.Now()
		var now, most atomic.Int64
		job := fleet.Job{
			Tasks: tasks(300), Out: out, Pace: &fleet.Pace{Ceiling: 100, Starved: func() bool { return time.Since(began) < 35*time.Second }}, Options: private(t, &sdk.Options{}),
			Configure: func(_ context.Context, _ *fleet.Task, o *sdk.Options) error {
				steps := scripted.Steps{scripted.Delay(10 * time.Second), scripted.Text("done")}
				if n := now.Add(1); n > takes {
					steps = append(scripted.Steps{&scripted.APIRetry{Status: 429, Delay: time.Second}, &scripted.APIRetry{Status: 429, Delay: 2 * time.Second, Attempt: 2}}, steps...)
				} else if n > most.Load() {
					most.Store(n)
				}
				o.Backend = scripted.New(scripted.WithScript(&scripted.Script{Default: steps}))
				return nil
			},
			OnEvent: func(e fleet.Event) {
				if e.Kind == fleet.EventFinished {
					now.Add(-1)
				}
			},
		}
		results, err := collect(t, job)
		require.NoError(t, err)
		require.Len(t, results, 300)
		for id, r := range results {
			require.Equal(t, fleet.Accepted, r.Status, id)
		}
		require.EqualValues(t, takes, most.Load())
		var s fleet.Summary
		require.NoError(t, json.Unmarshal([]byte(read(t, out, "summary.json")), &s))
		var tos []int
		for _, c := range s.Pace {
			tos = append(tos, c.To)
			if strings.Contains(c.Why, "overloaded") {
				require.LessOrEqual(t, c.To, c.From/2+1)
			}
		}
		require.Equal(t, []int{4, 8, 16, 8, 9, 10, 11}, tos[:7])
		require.GreaterOrEqual(t, s.Pace[0].At.Sub(began), 40*time.Second, "it does not grow on a starved machine")
		require.InDelta(t, 34, time.Duration(s.Starved).Seconds(), 1)
		require.Regexp(t, `the machine had too little processor time for 3[345]s \(\d+ %\)`, read(t, out, "report.html"))
		for _, to := range tos[4:] {
			require.LessOrEqual(t, to, takes+1)
			require.GreaterOrEqual(t, to, takes/2)
		}
	})
}

// An overload that comes inside a stream with the status 200 has no status of its own. The
// agent's word for it cuts the pace.
func TestAnOverloadWithoutAStatus(t *testing.T) {
	t.Parallel()
	text := "x"
	retry := func(word string) scripted.Steps {
		return scripted.Steps{&scripted.System{Subtype: "api_retry", Fields: map[string]any{"attempt": 1, "max_retries": 10, "retry_delay_ms": 1, "error_status": nil, "error": word}}, scripted.Text("done")}
	}
	result := func(fields map[string]any) scripted.Step {
		return &scripted.Result{Subtype: "success", IsError: new(true), Text: &text, TerminalReason: "api_error", Fields: fields}
	}
	for name, c := range map[string]struct {
		steps scripted.Steps
		cuts  bool
	}{
		"a retry, overloaded":    {retry("overloaded"), true},
		"a retry, rate limit":    {retry("rate_limit"), true},
		"a retry, type":          {retry("overloaded_error"), true},
		"a retry, something":     {retry("server_error"), false},
		"a result, overloaded":   {scripted.Steps{result(map[string]any{"api_error_type": "overloaded_error"})}, true},
		"a result, rate limit":   {scripted.Steps{result(map[string]any{"api_error_type": "rate_limit_error"})}, true},
		"a result, something":    {scripted.Steps{result(map[string]any{"api_error_type": "api_error"})}, false},
		"a result without words": {scripted.Steps{result(nil)}, false},
		"a message": {scripted.Steps{&scripted.Message{Fields: map[string]any{
			"type": "assistant", "error": "overloaded", "message": map[string]any{"role": "assistant", "model": "<synthetic>", "content": []any{}},
		}}, result(nil)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var cuts []string
				_, err := collect(t, fleet.Job{
					Tasks: tasks(1), Attempts: 1, Pace: &fleet.Pace{Start: 4, Starved: func() bool { return false }},
					Options: private(t, &sdk.Options{Backend: scripted.New(scripted.WithScript(&scripted.Script{Default: c.steps}))}),
					OnEvent: func(e fleet.Event) {
						if e.Kind == fleet.EventPaced {
							cuts = append(cuts, e.Detail)
						}
					},
				})
				require.NoError(t, err)
				if c.cuts {
					require.Equal(t, []string{"4 -> 2: the API is overloaded"}, cuts)
				} else {
					require.Empty(t, cuts)
				}
			})
		})
	}
}

func TestPacesThatCannotBe(t *testing.T) {
	t.Parallel()
	for option, j := range map[string]fleet.Job{
		"Concurrency": {Concurrency: 3, Pace: &fleet.Pace{}},
		"Pace":        {Pace: &fleet.Pace{Floor: 5, Start: 4}},
		"FS":          {FS: &journaltest.Disk{}},
	} {
		j.Tasks, j.Options = tasks(1), backend()
		require.ErrorContains(t, j.Validate(), "option "+option+":")
	}
	require.Error(t, fleet.Job{Tasks: tasks(1), Options: backend(), Pace: &fleet.Pace{Ceiling: -1}}.Validate())
	require.NoError(t, fleet.Job{Tasks: tasks(1), Options: backend(), Pace: &fleet.Pace{Start: 100}}.Validate())
}
