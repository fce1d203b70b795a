package fleet_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/acp/acpclient"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/sdk"
)

// uses is an agent each of whose turns takes a minute and reports what the session has used:
// a dollar, 2 credits, 3 turns, and tokens of the model and of a subagent's.
func uses() *sdk.Options {
	usage := func(n int) map[string]any {
		return map[string]any{"inputTokens": n, "outputTokens": 2 * n, "cacheCreationInputTokens": 3 * n, "cacheReadInputTokens": 4 * n}
	}
	var all []scripted.Turn
	for n := 1; n < 9; n++ {
		all = append(all, turn(scripted.Delay(time.Minute), scripted.Text("done"), &scripted.Result{
			Subtype: "success", Usage: map[string]any{"input_tokens": 1, "output_tokens": 2}, Fields: map[string]any{
				"total_cost_usd": float64(n), "total_credits": 2 * n, "num_turns": 3,
				"modelUsage": map[string]any{"large": usage(n), "small": usage(10 * n)}, // the subagent's is small
			},
		}))
	}
	return backend(all...)
}

// A task that has spent its budget begins no further turn and no further round of its
// verifier. Its limits count the usage of subagents.
func TestTheBudgetOfATaskIsAskedBeforeEachTurn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		budget fleet.Budget
		turns  int
	}{
		"none":               {fleet.Budget{}, 4},
		"enough":             {fleet.Budget{USD: 5, Credits: 9, Turns: 13, Tokens: fleet.Tokens{Input: 45, Output: 89}}, 4},
		"usd":                {fleet.Budget{USD: 2}, 2},
		"credits":            {fleet.Budget{Credits: 3}, 2},
		"turns":              {fleet.Budget{Turns: 9}, 3},
		"tokens.input":       {fleet.Budget{Tokens: fleet.Tokens{Input: 22}}, 2},
		"tokens.output":      {fleet.Budget{Tokens: fleet.Tokens{Output: 60}}, 3},
		"tokens.cacheWrite":  {fleet.Budget{Tokens: fleet.Tokens{CacheWrite: 33}}, 1},
		"tokens.cacheRead":   {fleet.Budget{Tokens: fleet.Tokens{CacheRead: 50}}, 2},
		"of the turn's last": {fleet.Budget{USD: 4}, 4},
	} {
		for _, rounds := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					task := fleet.Task{ID: "a", Prompt: "one", Turns: []string{"two", "three", "four"}, Budget: &c.budget}
					if rounds { // the fourth verification accepts
						asked := 0
						task.Turns, task.Verify = nil, &fleet.Verify{Prompt: "again", Rounds: 9, Check: func(context.Context, fleet.Candidate) (fleet.Verdict, error) {
							asked++
							return fleet.Verdict{OK: asked == 4}, nil
						}}
					}
					results, err := collect(t, fleet.Job{Tasks: []fleet.Task{task}, Options: private(t, uses())})
					require.NoError(t, err)
					r := results["a"]
					assert.InDelta(t, c.turns, r.Usage.USD, 1e-9)
					assert.Equal(t, fleet.Tokens{Input: 11 * int64(c.turns), Output: 22 * int64(c.turns), CacheWrite: 33 * int64(c.turns), CacheRead: 44 * int64(c.turns)}, r.Usage.Tokens)
					assert.Equal(t, 3*c.turns, r.Usage.Turns)
					assert.Len(t, r.Attempts, 1)
					if c.turns == 4 {
						assert.Equal(t, fleet.Accepted, r.Status, r.Error)
						return
					}
					assert.Equal(t, fleet.OverBudget, r.Status)
					assert.Equal(t, "Budget", r.Class)
					assert.Contains(t, r.Error, "the task's budget of "+name+" is spent")
				})
			})
		}
	}
}

// The wall time of a budget ends an attempt in its turn, counts earlier attempts, and is not
// Task.Timeout.
func TestTheWallTimeOfATask(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		job    fleet.Job
		took   time.Duration
		status fleet.Status
	}{
		"of a task":         {fleet.Job{TaskBudget: &fleet.Budget{Wall: fleet.Duration(90 * time.Second)}}, 90 * time.Second, fleet.OverBudget},
		"a shorter timeout": {fleet.Job{TaskBudget: &fleet.Budget{Wall: fleet.Duration(110 * time.Second)}, Timeout: time.Minute}, time.Minute, fleet.TimedOut},
		"enough":            {fleet.Job{TaskBudget: &fleet.Budget{Wall: fleet.Duration(time.Hour)}}, 20 * time.Minute, fleet.Accepted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				text, j := "x", c.job
				j.Tasks = tasks(1)
				j.Options = private(t, backend( // the first attempt takes 30 s
					when("interrupted", scripted.Delay(20*time.Minute-30*time.Second), scripted.Text("done")),
					when("do", scripted.Delay(30*time.Second), &scripted.Result{Subtype: "success", IsError: new(true), Text: &text, APIErrorStatus: 529})))
				results, err := collect(t, j)
				require.NoError(t, err)
				r := results["t0"]
				assert.Equal(t, c.status, r.Status, r.Error)
				assert.Len(t, r.Attempts, 2)
				if c.status != fleet.TimedOut { // which is of one attempt
					assert.InDelta(t, c.took, time.Duration(r.Usage.Wall), float64(5*time.Second))
				}
			})
		})
	}
}

// Time that Job.Before took is of the budget, too: no session is opened when it is spent.
func TestTheWallTimeBeforeAnAttempt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		took   time.Duration
		status fleet.Status
		events bool
	}{
		"all of it":  {2 * time.Minute, fleet.OverBudget, false},
		"a part":     {time.Minute, fleet.OverBudget, true},
		"not enough": {10 * time.Second, fleet.Accepted, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var events atomic.Int32
				o := private(t, uses()) // a turn takes a minute
				o.OnEvent = func(sdk.EventRecord) { events.Add(1) }
				results, err := collect(t, fleet.Job{Tasks: tasks(1), Options: o, TaskBudget: &fleet.Budget{Wall: fleet.Duration(90 * time.Second)}, Before: func(context.Context, *fleet.Task) (fleet.Decision, error) {
					time.Sleep(c.took)
					return fleet.Decision{}, nil
				}})
				require.NoError(t, err)
				r := results["t0"]
				assert.Equal(t, c.status, r.Status, r.Error)
				assert.Equal(t, c.events, events.Load() > 0)
				if c.status == fleet.OverBudget {
					assert.Equal(t, "the task's budget of wall is spent", r.Error)
				}
			})
		})
	}
}

// When the job's budget is spent, a task that runs begins no further turn. It goes on after
// it when the job is resumed with another budget.
func TestTheBudgetOfAJobIsAskedBeforeEachTurn(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var warned atomic.Int32
		job := fleet.Job{
			Options: private(t, uses()), Out: out, Concurrency: 2, Budget: &fleet.Budget{USD: 3},
			Tasks: []fleet.Task{{ID: "a", Prompt: "one", Turns: []string{"two", "three"}}, {ID: "b", Prompt: "one", Turns: []string{"two", "three"}}},
			OnEvent: func(e fleet.Event) {
				if e.Kind == fleet.EventWarning {
					warned.Add(1)
				}
			},
		}
		results, err := collect(t, job)
		var stopped *fleet.StoppedError
		require.ErrorAs(t, err, &stopped)
		assert.Equal(t, fleet.StopBudget, stopped.Reason)
		assert.Equal(t, "the job's budget of usd is spent", stopped.Detail)
		assert.Equal(t, 2, stopped.Left)
		assert.Empty(t, results)
		assert.Equal(t, int32(1), warned.Load())

		job.Resume, job.Budget = true, nil
		results, err = collect(t, job)
		require.NoError(t, err)
		for id, r := range results {
			assert.Equal(t, fleet.Accepted, r.Status, id)
			assert.Contains(t, r.Text, "done")
			require.Len(t, r.Attempts, 2)
			assert.Equal(t, fleet.Interrupted, r.Attempts[0].Status)
			assert.Equal(t, "Budget", r.Attempts[0].Class)
			assert.Equal(t, fleet.Mode("resume"), r.Attempts[1].Mode)
			assert.Equal(t, 6, r.Attempts[0].Usage.Turns, "two turns were done")
			assert.Equal(t, 3, r.Attempts[1].Usage.Turns, "and are not done again")
		}
	})
}

// The budget is asked before a start, too: of a task that was interrupted, and of one whose
// agent ended a turn at what was left.
func TestABudgetThatIsSpentBeforeAStart(t *testing.T) {
	t.Parallel()
	agentStops := func() *sdk.Options {
		return backend(when("interrupted", scripted.Text("done")), when("do", &scripted.Result{Subtype: "error_max_budget_usd", IsError: new(true), Cost: 2}))
	}
	job := fleet.Job{Tasks: tasks(1), Options: agentStops(), Out: t.TempDir(), Budget: &fleet.Budget{USD: 2}}
	results, err := collect(t, job)
	var stopped *fleet.StoppedError
	require.ErrorAs(t, err, &stopped)
	assert.Equal(t, fleet.StopBudget, stopped.Reason)
	assert.Empty(t, results, "the task may go on")
	job.Resume, job.Budget, job.TaskBudget = true, nil, &fleet.Budget{USD: 1}
	var events atomic.Int32
	job.Options.OnEvent = func(sdk.EventRecord) { events.Add(1) }
	results, err = collect(t, job)
	require.NoError(t, err)
	r := results["t0"]
	assert.Equal(t, fleet.OverBudget, r.Status, r.Error)
	require.Len(t, r.Attempts, 2)
	assert.Zero(t, r.Attempts[1].Usage.Turns)
	assert.Zero(t, events.Load(), "no session was opened")

	results, err = collect(t, fleet.Job{Tasks: tasks(1), Options: agentStops()})
	require.NoError(t, err)
	assert.Equal(t, fleet.OverBudget, results["t0"].Status, "its own limit, Options.MaxBudgetUSD")
}

// A limit in US dollars is an error where the agent never reports any.
func TestABudgetThatIsNeverSpent(t *testing.T) {
	t.Parallel()
	usd := &fleet.Budget{USD: 1}
	for name, c := range map[string]struct {
		backend sdk.Backend
		job     fleet.Job
		task    *fleet.Budget
		want    string
	}{
		"of the job":     {sdk.Qoder(sdk.QoderConfig{}), fleet.Job{Budget: usd}, nil, "option Budget.USD: would never be spent"},
		"of each task":   {sdk.Qoder(sdk.QoderConfig{}), fleet.Job{TaskBudget: usd}, nil, "option TaskBudget.USD: would never be spent"},
		"of a task":      {sdk.Qoder(sdk.QoderConfig{}), fleet.Job{}, usd, "task 1 (a): budget.usd would never be spent"},
		"credits":        {sdk.Qoder(sdk.QoderConfig{}), fleet.Job{Budget: &fleet.Budget{Credits: 1}}, &fleet.Budget{Credits: 1}, ""},
		"another agent":  {sdk.Claude(sdk.ClaudeConfig{}), fleet.Job{Budget: usd, TaskBudget: usd}, usd, ""},
		"a cost, maybe":  {acpclient.Backend("agent"), fleet.Job{Budget: usd, TaskBudget: usd}, usd, ""},
		"no budget":      {sdk.Qoder(sdk.QoderConfig{}), fleet.Job{}, nil, ""},
		"another budget": {sdk.Qoder(sdk.QoderConfig{}), fleet.Job{TaskBudget: &fleet.Budget{Turns: 1}}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := c.job
			j.Options, j.Tasks = &sdk.Options{Backend: c.backend}, []fleet.Task{{ID: "a", Prompt: "go", Budget: c.task}}
			if c.want == "" {
				require.NoError(t, j.Validate())
				return
			}
			require.ErrorContains(t, j.Validate(), c.want)
		})
	}
	results, err := collect(t, fleet.Job{
		Tasks: tasks(1), TaskBudget: usd, Options: backend(),
		Configure: func(_ context.Context, _ *fleet.Task, o *sdk.Options) error {
			o.Backend = sdk.Qoder(sdk.QoderConfig{})
			return nil
		},
	})
	require.NoError(t, err)
	assert.Equal(t, fleet.Invalid, results["t0"].Status, "Configure has changed the backend")
	assert.Contains(t, results["t0"].Error, "would never be spent")
}
