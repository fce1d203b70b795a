package fleet_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/sdk"
)

func TestAJob(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	results, err := collect(t, fleet.Job{Tasks: tasks(20), Options: backend(), Out: out, Concurrency: 5})
	require.NoError(t, err)
	require.Len(t, results, 20)
	for id, r := range results {
		assert.Equal(t, fleet.Accepted, r.Status, r.Error)
		assert.Contains(t, r.Text, "do "+id[1:])
		assert.Len(t, r.Attempts, 1)
		assert.Contains(t, read(t, out, r.Transcript), `"type":"result"`)
	}
	projected := lines(read(t, out, "results.jsonl"))
	require.Len(t, projected, 20)
	var first fleet.TaskResult
	require.NoError(t, json.Unmarshal([]byte(projected[0]), &first))
	assert.Equal(t, "t0", first.ID, "in the order of the tasks")
	var s fleet.Summary
	require.NoError(t, json.Unmarshal([]byte(read(t, out, "summary.json")), &s))
	assert.Equal(t, 20, s.Accepted)
	assert.Zero(t, s.Left)
	_, err = collect(t, fleet.Job{Tasks: tasks(20), Options: backend(), Out: out})
	require.ErrorIs(t, err, journal.ErrExists, "a journal without Resume is an error")
}

func TestWhatBecomesOfAttempts(t *testing.T) {
	t.Parallel()
	failed := func(fields scripted.Result) scripted.Turn {
		yes := true
		fields.IsError = &yes
		return turn(&fields)
	}
	text := "x"
	for name, c := range map[string]struct {
		opts     *sdk.Options
		task     fleet.Task
		job      fleet.Job
		status   fleet.Status
		attempts int
		modes    string
		stopped  string
	}{
		"a success":          {opts: backend(turn(scripted.Text("done"))), status: fleet.Accepted, attempts: 1},
		"an empty answer":    {opts: backend(turn(&scripted.Result{Text: new(string)})), status: fleet.Suspicious, attempts: 1},
		"no tool was called": {opts: backend(turn(scripted.Text("done"))), task: fleet.Task{ExpectTools: true}, status: fleet.Suspicious, attempts: 1},
		"the verifier says no": {
			opts: backend(turn(scripted.Text("done"))), task: fleet.Task{Verify: &fleet.Verify{Command: "echo wrong; exit 3"}},
			status: fleet.Rejected, attempts: 1,
		},
		"the verifier says yes": {opts: backend(turn(scripted.Text("done"))), task: fleet.Task{Verify: &fleet.Verify{Command: "test -n \"$TROUPE_TASK\""}}, status: fleet.Accepted, attempts: 1},
		"the verifier panics": {
			opts: backend(), task: fleet.Task{Verify: &fleet.Verify{Check: func(context.Context, fleet.Candidate) (fleet.Verdict, error) { panic("no") }}},
			status: fleet.NotVerified, attempts: 3, modes: "fresh resume resume",
		},
		"overload, for ever": {
			opts:   backend(failed(scripted.Result{Text: &text, APIErrorStatus: 529}), failed(scripted.Result{Text: &text, APIErrorStatus: 529}), failed(scripted.Result{Text: &text, APIErrorStatus: 529})),
			status: fleet.Overloaded, attempts: 3, modes: "fresh resume resume",
		},
		"the same failure twice": {
			opts: backend(failed(scripted.Result{Text: &text, APIErrorStatus: 529})), job: fleet.Job{EqualFailures: 2},
			status: fleet.Overloaded, attempts: 2,
		},
		"a conversation that is too long": {
			opts:   backend(failed(scripted.Result{Text: &text, TerminalReason: "prompt_too_long"})),
			status: fleet.ContextFull, attempts: 3, modes: "fresh again again",
		},
		"clean": {
			opts: backend(failed(scripted.Result{Text: &text, APIErrorStatus: 529})), task: fleet.Task{Clean: true},
			status: fleet.Overloaded, attempts: 3, modes: "fresh fresh fresh",
		},
		"an error of the agent": {opts: backend(failed(scripted.Result{Text: &text})), status: fleet.Failed, attempts: 1},
		"too many turns":        {opts: backend(failed(scripted.Result{Subtype: "error_max_turns"})), status: fleet.MaxTurns, attempts: 1},
		"not logged in":         {opts: backend(failed(scripted.Result{Text: &text, APIErrorStatus: 401})), stopped: fleet.StopUnauthorized},
		"a spent window":        {opts: backend(failed(scripted.Result{Text: &text, Fields: map[string]any{"api_error": "usage_limit_reached"}})), stopped: fleet.StopUsageLimit},
		"the agent dies":        {opts: backend(turn(&scripted.Exit{Code: 3})), status: fleet.Crashed, attempts: 3},
		"it takes too long":     {opts: backend(turn(scripted.Delay(time.Hour))), task: fleet.Task{Timeout: fleet.Duration(20 * time.Millisecond)}, status: fleet.TimedOut, attempts: 1},
		"no such directory":     {opts: backend(), task: fleet.Task{Workspace: &fleet.Workspace{From: "/does/not/exist"}}, status: fleet.BadWorkspace, attempts: 1},
		"bad options":           {opts: &sdk.Options{Backend: scripted.New(), Executable: "x", MaxLine: -1}, status: fleet.Invalid, attempts: 1},
		"the budget of a task": {
			opts: backend(failed(scripted.Result{Text: &text, APIErrorStatus: 529, Cost: 2})), task: fleet.Task{Budget: &fleet.Budget{USD: 1}},
			status: fleet.OverBudget, attempts: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j, task := c.job, c.task
			task.ID, task.Prompt = "a", "go"
			j.Tasks, j.Options, j.Out = []fleet.Task{task}, c.opts, t.TempDir()
			results, err := collect(t, j)
			if c.stopped != "" {
				var stopped *fleet.StoppedError
				require.ErrorAs(t, err, &stopped)
				assert.Equal(t, c.stopped, stopped.Reason)
				assert.Equal(t, 1, stopped.Left)
				assert.Empty(t, results)
				return
			}
			require.NoError(t, err)
			r := results["a"]
			assert.Equal(t, c.status, r.Status, r.Error)
			assert.Equal(t, c.status.Family(), r.Family)
			assert.Len(t, r.Attempts, c.attempts)
			if c.modes != "" {
				var modes []string
				for _, a := range r.Attempts {
					modes = append(modes, string(a.Mode))
				}
				assert.Equal(t, c.modes, strings.Join(modes, " "))
			}
			assert.Equal(t, r.Status == fleet.Accepted, r.OK())
			assert.Equal(t, r.OK(), r.Error == "")
		})
	}
}

// A rejection goes back to the same session, as often as the task allows.
func TestTheVerifierIsHeard(t *testing.T) {
	t.Parallel()
	for rounds, want := range map[int]fleet.Status{1: fleet.Rejected, 2: fleet.Accepted} {
		t.Run(fmt.Sprint(rounds), func(t *testing.T) {
			t.Parallel()
			results, err := collect(t, fleet.Job{
				Options: backend(), Tasks: []fleet.Task{{ID: "a", Prompt: "go", Verify: &fleet.Verify{
					Check: func(_ context.Context, c fleet.Candidate) (fleet.Verdict, error) {
						return fleet.Verdict{OK: strings.Count(c.Text, "wrong") >= 2, Output: "wrong"}, nil
					},
					Prompt: "It is {{.Output}}.", Rounds: rounds,
				}}},
				Configure: func(_ context.Context, _ *fleet.Task, o *sdk.Options) error {
					o.Backend = scripted.New(scripted.WithScript(&scripted.Script{Transcript: true, Default: scripted.Steps{scripted.Text("${history}")}}), scripted.WithHistory(&scripted.MemoryHistory{}))
					return nil
				},
			})
			require.NoError(t, err)
			assert.Equal(t, want, results["a"].Status, "%+v", results["a"])
			assert.Len(t, results["a"].Attempts, 1)
		})
	}
}

func TestOneTaskAfterAnother(t *testing.T) {
	t.Parallel()
	results, err := collect(t, fleet.Job{Options: backend(when("break", &scripted.Result{Subtype: "error_max_turns"})), Tasks: []fleet.Task{
		{ID: "sum", Prompt: `{{(index .Results "a").Text}} + {{(index .Results "b").Text}}`, After: []string{"a", "b"}},
		{ID: "a", Prompt: "one"},
		{ID: "b", Prompt: "two"},
		{ID: "bad", Prompt: "break"},
		{ID: "never", Prompt: "x", After: []string{"bad", "a"}},
		{ID: "neither", Prompt: "x", After: []string{"never"}},
	}})
	require.NoError(t, err)
	assert.Contains(t, results["sum"].Text, "one")
	assert.Contains(t, results["sum"].Text, "two")
	assert.Equal(t, fleet.Skipped, results["never"].Status)
	assert.Contains(t, results["never"].Error, "bad")
	assert.Equal(t, fleet.Skipped, results["neither"].Status)
	assert.Empty(t, results["never"].Attempts)
}

func TestMistakesInTasks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tasks []fleet.Task
		want  string
	}{
		"none":       {nil, "no tasks"},
		"twice":      {[]fleet.Task{{ID: "a", Prompt: "x"}, {ID: "a", Prompt: "x"}}, "is that of task 1"},
		"no id":      {[]fleet.Task{{Prompt: "x"}}, "id is"},
		"a path":     {[]fleet.Task{{ID: "../a", Prompt: "x"}}, "id is"},
		"no prompt":  {[]fleet.Task{{ID: "a"}}, "is empty"},
		"a stranger": {[]fleet.Task{{ID: "a", Prompt: "x", After: []string{"b"}}}, "does not exist"},
		"a circle":   {[]fleet.Task{{ID: "a", Prompt: "x", After: []string{"b"}}, {ID: "b", Prompt: "x", After: []string{"a"}}}, "leads back"},
		"template":   {[]fleet.Task{{ID: "a", Prompt: "x"}, {ID: "b", Prompt: "{{", After: []string{"a"}}}, "prompt"},
		"options":    {[]fleet.Task{{ID: "a", Prompt: "x", Options: json.RawMessage(`{"modell":"x"}`)}}, "modell"},
		"workspace":  {[]fleet.Task{{ID: "a", Prompt: "x", Workspace: &fleet.Workspace{Kind: "copy"}}}, "Out"},
		"lockfiles":  {[]fleet.Task{{ID: "a", Prompt: "x", Workspace: &fleet.Workspace{Setup: "true", Lockfiles: []string{"a"}}}}, "Lockfiles: was removed"},
		"none of it": {[]fleet.Task{{ID: "a", Prompt: "x", Workspace: &fleet.Workspace{Lockfiles: []string{}}}}, "Lockfiles: was removed"},
		"verify":     {[]fleet.Task{{ID: "a", Prompt: "x", Verify: &fleet.Verify{}}}, "Command"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := collect(t, fleet.Job{Tasks: c.tasks, Options: backend()})
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestBefore(t *testing.T) {
	t.Parallel()
	asked := atomic.Int32{}
	results, err := collect(t, fleet.Job{
		Tasks: tasks(4), Options: backend(), Before: func(_ context.Context, task *fleet.Task) (fleet.Decision, error) {
			switch task.ID {
			case "t0":
				return fleet.Decision{Skip: true, Why: "merged"}, nil
			case "t1":
				return fleet.Decision{Fail: true}, nil
			case "t2":
				if asked.Add(1) < 3 {
					return fleet.Decision{}, errors.New("the tracker is down")
				}
			}
			return fleet.Decision{}, nil
		},
	})
	require.NoError(t, err)
	assert.Equal(t, fleet.Skipped, results["t0"].Status)
	assert.Equal(t, "merged", results["t0"].Error)
	assert.Equal(t, fleet.Failed, results["t1"].Status)
	assert.Equal(t, fleet.Accepted, results["t2"].Status)
	assert.Equal(t, int32(3), asked.Load())
	assert.Equal(t, fleet.Accepted, results["t3"].Status)
}

// Without rules nothing is allowed, and what was denied is counted.
func TestNobodyIsThereToAnswer(t *testing.T) {
	t.Parallel()
	opts := backend(turn(&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "make"}, Result: "made"}, scripted.Text("done")))
	results, err := collect(t, fleet.Job{Tasks: tasks(1), Options: opts})
	require.NoError(t, err)
	assert.Equal(t, 1, results["t0"].Denied)
	assert.Equal(t, []fleet.Denial{{Tool: "Bash", Input: `{"command":"make"}`, Reason: "The host's policy denies this call: no rule is about it."}}, results["t0"].Denials)
	opts.AllowedTools = []string{"Bash(make)"}
	results, err = collect(t, fleet.Job{Tasks: tasks(1), Options: opts})
	require.NoError(t, err)
	assert.Zero(t, results["t0"].Denied)
	assert.Equal(t, 1, results["t0"].ToolCalls)
	assert.Empty(t, results["t0"].Denials)
}

// A result names 20 denied calls, of all turns of the attempt, and the begin of what each asked.
func TestDenialsAreBounded(t *testing.T) {
	t.Parallel()
	var calls []scripted.Step
	for i := range 15 {
		calls = append(calls, &scripted.ToolUse{Name: fmt.Sprint("Bash", i), Input: map[string]any{"command": strings.Repeat("é", 1000)}})
	}
	out := t.TempDir()
	results, err := collect(t, fleet.Job{
		Out: out, Options: backend(turn(append(calls, scripted.Text("one"))...), turn(append(calls, scripted.Text("two"))...)),
		Tasks: []fleet.Task{{ID: "a", Prompt: "go", Turns: []string{"on"}}},
	})
	require.NoError(t, err)
	r := results["a"]
	assert.Equal(t, 30, r.Denied)
	require.Len(t, r.Denials, 20)
	assert.Equal(t, []string{"Bash0", "Bash14", "Bash0", "Bash4"}, []string{r.Denials[0].Tool, r.Denials[14].Tool, r.Denials[15].Tool, r.Denials[19].Tool})
	for _, d := range r.Denials {
		assert.LessOrEqual(t, len(d.Input), 203)
		assert.True(t, strings.HasPrefix(d.Input, `{"command":"éé`) && strings.HasSuffix(d.Input, "é…"), d.Input)
	}
	var line fleet.TaskResult
	require.NoError(t, json.Unmarshal([]byte(read(t, out, "results.jsonl")), &line))
	assert.Equal(t, r.Denials, line.Denials)
}

func TestStops(t *testing.T) {
	t.Parallel()
	text := "x"
	yes := true
	bad := backend(when("do", &scripted.Result{Text: &text, IsError: &yes, Cost: 1}))
	for name, c := range map[string]struct {
		job  fleet.Job
		want string
		done int
	}{
		"failures": {fleet.Job{FailOn: fleet.Threshold{Count: 3}}, fleet.StopFailures, 3},
		"fraction": {fleet.Job{FailOn: fleet.Threshold{Fraction: 0.2}}, fleet.StopFailures, 2},
		"budget":   {fleet.Job{Budget: &fleet.Budget{USD: 4}}, fleet.StopBudget, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := c.job
			j.Tasks, j.Options, j.Concurrency, j.Out = tasks(10), bad, 1, t.TempDir()
			results, err := collect(t, j)
			var stopped *fleet.StoppedError
			require.ErrorAs(t, err, &stopped)
			assert.Equal(t, c.want, stopped.Reason)
			assert.Len(t, results, c.done)
			assert.Equal(t, 10-c.done, stopped.Left)
			// What was not run is run when the job is resumed without the limit.
			j.Resume, j.FailOn, j.Budget = true, fleet.Threshold{}, nil
			results, err = collect(t, j)
			require.NoError(t, err)
			assert.Len(t, results, 10)
			for id, r := range results {
				assert.Len(t, r.Attempts, 1, id)
			}
		})
	}
}

// Breaking out of the loop ends what runs in order; the rest runs after a resume.
func TestBreakAndResume(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // else a job may be over before its first results are read
		out := t.TempDir()
		j := fast(fleet.Job{Tasks: tasks(12), Options: private(t, backend(turn(scripted.Delay(time.Minute), scripted.Text("done")))), Concurrency: 2, Out: out})
		n := 0
		for _, err := range fleet.Run(t.Context(), j) {
			require.NoError(t, err)
			if n++; n == 3 {
				break
			}
		}
		j.Resume = true
		earlier, all := 0, 0
		h, err := fleet.Start(t.Context(), j)
		require.NoError(t, err)
		for r, err := range h.Results(t.Context()) {
			require.NoError(t, err)
			all++
			if r.Earlier {
				earlier++
			}
			assert.Len(t, r.Attempts, 1)
		}
		assert.Equal(t, 12, all)
		assert.GreaterOrEqual(t, earlier, 3)
		assert.Less(t, earlier, 12)
		assert.Equal(t, earlier, h.Progress().Earlier)
		// Other tasks under the same ids are another job.
		j.Tasks[3].Prompt = "something else"
		_, err = collect(t, j)
		require.ErrorIs(t, err, fleet.ErrOtherTasks)
		j.Out = t.TempDir()
		_, err = collect(t, j)
		require.ErrorIs(t, err, journal.ErrMissing)
	})
}

// The end of the context interrupts the agents. Their sessions go on after a resume.
func TestCancelAndResume(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		opts := private(t, backend(when("interrupted", scripted.Text("finished after all")), when("do", scripted.Text("one moment"), scripted.Delay(time.Hour))))
		j := fast(fleet.Job{Tasks: tasks(3), Options: opts, Concurrency: 2, Out: t.TempDir()})
		ctx, cancel := context.WithCancel(t.Context())
		begun := atomic.Int32{}
		j.OnEvent = func(e fleet.Event) {
			if e.Kind == fleet.EventStarted && begun.Add(1) == 2 {
				time.AfterFunc(200*time.Millisecond, cancel) // when all has been said
			}
		}
		for _, err := range fleet.Run(ctx, j) {
			var stopped *fleet.StoppedError
			require.ErrorAs(t, err, &stopped)
			assert.Equal(t, fleet.StopCanceled, stopped.Reason)
		}
		require.Error(t, ctx.Err())
		j.Resume, j.OnEvent, j.Concurrency = true, nil, 3
		j.Tasks[2].Timeout = 0
		h, err := fleet.Start(t.Context(), j)
		require.NoError(t, err)
		resumed := 0
		for r, err := range h.Results(t.Context()) {
			if err != nil {
				break
			}
			if r.Attempts[len(r.Attempts)-1].Mode == "resume" {
				resumed++
				assert.Equal(t, "finished after all", r.Text)
				assert.Equal(t, fleet.Interrupted, r.Attempts[0].Status)
			}
			if resumed == 2 {
				h.Cancel() // the third one sleeps
			}
		}
		assert.Equal(t, 2, resumed)
		<-h.Done()
	})
}

func TestStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // no task ends while this one has something to do
		offered := atomic.Int32{}
		source := func(yield func(fleet.Task, error) bool) {
			for i := range 200 {
				offered.Add(1)
				if !yield(fleet.Task{ID: fmt.Sprint("t", i), Prompt: "go"}, nil) {
					return
				}
			}
		}
		n := 0
		o := private(t, backend(turn(scripted.Delay(time.Minute), scripted.Text("done"))))
		for r, err := range fleet.Stream(t.Context(), fleet.Job{Options: o, Concurrency: 2, Out: t.TempDir()}, source) {
			require.NoError(t, err)
			assert.True(t, r.OK())
			if n++; n == 1 {
				assert.Less(t, offered.Load(), int32(100), "tasks are taken as there is room")
			}
		}
		assert.Equal(t, 200, n)
		for _, err := range fleet.Stream(t.Context(), fleet.Job{Options: o}, func(yield func(fleet.Task, error) bool) {
			_ = yield(fleet.Task{ID: "a", Prompt: "x"}, nil) && yield(fleet.Task{}, errors.New("the file is cut"))
		}) {
			if err != nil {
				require.ErrorContains(t, err, "the file is cut")
			}
		}
	})
}

// A directory that cannot be written is an error before anything starts.
func TestNoPlaceForTheJournal(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := collect(t, fleet.Job{Tasks: tasks(1), Options: backend(), Out: filepath.Join(file, "out")})
	require.Error(t, err)
}

func TestSeveralTurns(t *testing.T) {
	t.Parallel()
	results, err := collect(t, fleet.Job{Options: backend(), Out: t.TempDir(), Tasks: []fleet.Task{{ID: "a", Prompt: "one", Turns: []string{"two", "three"}}}})
	require.NoError(t, err)
	assert.Contains(t, results["a"].Text, "three")
	assert.Equal(t, fleet.Accepted, results["a"].Status)
}

func TestTasksThatExcludeEachOther(t *testing.T) {
	t.Parallel()
	all := tasks(10)
	for i := range all {
		all[i].Exclusive = "database"
	}
	var live, most atomic.Int32
	results, err := collect(t, fleet.Job{Tasks: all, Options: backend(), Concurrency: 5, Configure: func(context.Context, *fleet.Task, *sdk.Options) error {
		most.Store(max(most.Load(), live.Add(1)))
		return nil
	}, Verify: &fleet.Verify{Check: func(context.Context, fleet.Candidate) (fleet.Verdict, error) {
		live.Add(-1)
		return fleet.Verdict{OK: true}, nil
	}}})
	require.NoError(t, err)
	assert.Len(t, results, 10)
	assert.Equal(t, int32(1), most.Load())
}
