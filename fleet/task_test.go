package fleet_test

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// A task whose background work does not end is incomplete. Work that ends is waited for, and
// the answer of the turn that it starts counts.
func TestBackgroundWork(t *testing.T) {
	t.Parallel()
	opts := backend(
		when("serve", &scripted.Shell{Command: "npm run dev", Description: "the server", Gate: agent.GateAllow, Takes: 1000 * time.Hour}, scripted.Text("it runs")),
		when("build", &scripted.Shell{Command: "make", Gate: agent.GateAllow, Takes: time.Millisecond, Then: scripted.Steps{scripted.Text("it is built")}}, scripted.Text("it builds")),
	)
	opts.AllowedTools = []string{"Bash(npm run dev)", "Bash(make)"}
	results, err := collect(t, fleet.Job{
		Options: opts, Out: t.TempDir(), Tasks: []fleet.Task{{ID: "a", Prompt: "serve"}, {ID: "b", Prompt: "build"}},
		Configure: func(_ context.Context, task *fleet.Task, o *sdk.Options) error {
			if o.Limits.Background = time.Hour; task.ID == "a" {
				o.Limits.Background = 20 * time.Millisecond
			}
			return nil
		},
	})
	require.NoError(t, err)
	assert.Equal(t, fleet.Incomplete, results["a"].Status)
	assert.Equal(t, fleet.Family("agent"), results["a"].Family)
	assert.Contains(t, results["a"].Error, "the server")
	assert.Equal(t, "it runs", results["a"].Text)
	assert.Len(t, results["a"].Attempts, 1)
	assert.Equal(t, fleet.Accepted, results["b"].Status, results["b"].Error)
	assert.Equal(t, "it is built", results["b"].Text)
}

// A structured output is an answer without a text. It is in the results, the verifier gets it,
// and a resume still has it.
func TestAStructuredOutput(t *testing.T) {
	t.Parallel()
	const want = `{"name":"x","sizes":[1,2]}`
	opts := backend(turn(&scripted.Result{Text: new(string), Structured: map[string]any{"name": "x", "sizes": []any{1, 2}}}))
	opts.OutputFormat = &session.OutputFormat{Type: "json_schema", Schema: json.RawMessage(`{"type":"object"}`)}
	var seen atomic.Value
	job := fleet.Job{Options: opts, Out: t.TempDir(), Tasks: tasks(1), Verify: &fleet.Verify{Check: func(_ context.Context, c fleet.Candidate) (fleet.Verdict, error) {
		seen.Store(string(c.Structured))
		return fleet.Verdict{OK: true}, nil
	}}}
	for _, resume := range []bool{false, true} {
		job.Resume = resume
		results, err := collect(t, job)
		require.NoError(t, err)
		assert.Equal(t, fleet.Accepted, results["t0"].Status, results["t0"].Error)
		assert.Empty(t, results["t0"].Text)
		assert.JSONEq(t, want, string(results["t0"].Structured))
		assert.JSONEq(t, want, seen.Load().(string))
		var line fleet.TaskResult
		require.NoError(t, json.Unmarshal([]byte(read(t, job.Out, "results.jsonl")), &line))
		assert.JSONEq(t, want, string(line.Structured))
	}
	job.Verify, job.Out, job.Resume = nil, t.TempDir(), false
	results, err := collect(t, job)
	require.NoError(t, err)
	assert.Equal(t, fleet.Accepted, results["t0"].Status, "it is no empty answer")
}

// The options of a task replace those of the job, key by key, for this task alone.
func TestTheOptionsOfATask(t *testing.T) {
	t.Parallel()
	opts := backend()
	opts.Model, opts.MaxTurns, opts.Env = "large", sdk.Some(7), map[string]string{"A": "job"}
	var mu sync.Mutex
	got := map[string]sdk.Options{}
	results, err := collect(t, fleet.Job{
		Options: opts, Tasks: []fleet.Task{
			{ID: "own", Prompt: "go", Options: json.RawMessage(`{"model":"small","env":{"B":"task"},"title":""}`)},
			{ID: "none", Prompt: "go"},
		},
		Configure: func(_ context.Context, task *fleet.Task, o *sdk.Options) error {
			mu.Lock()
			defer mu.Unlock()
			got[task.ID] = *o
			return nil
		},
	})
	require.NoError(t, err)
	for id, r := range results {
		assert.Equal(t, fleet.Accepted, r.Status, "%s: %s", id, r.Error)
	}
	assert.Equal(t, "small", got["own"].Model)
	assert.Equal(t, map[string]string{"B": "task"}, got["own"].Env, "a key replaces the whole value")
	assert.Equal(t, sdk.Some(7), got["own"].MaxTurns, "that of the job")
	assert.Equal(t, "large", got["none"].Model)
	assert.Equal(t, map[string]string{"A": "job"}, got["none"].Env)
	assert.Equal(t, "large", opts.Model, "the caller's options are as they were")
}

// Before is asked again before a retry, and what it says then counts.
func TestBeforeARetry(t *testing.T) {
	t.Parallel()
	yes, text := true, "overloaded"
	var asked atomic.Int64
	results, err := collect(t, fleet.Job{
		Options: backend(turn(&scripted.Result{Text: &text, IsError: &yes, APIErrorStatus: 529})), Tasks: tasks(1), Out: t.TempDir(),
		Before: func(context.Context, *fleet.Task) (fleet.Decision, error) {
			return fleet.Decision{Skip: asked.Add(1) == 2, Why: "somebody else has done it"}, nil
		},
	})
	require.NoError(t, err)
	assert.EqualValues(t, 2, asked.Load())
	assert.Equal(t, fleet.Skipped, results["t0"].Status)
	assert.Equal(t, "somebody else has done it", results["t0"].Error)
	require.Len(t, results["t0"].Attempts, 1)
	assert.Equal(t, fleet.Overloaded, results["t0"].Attempts[0].Status)
}

// The same when a job is resumed, of a task that was under way.
func TestBeforeAResume(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var asked, configured atomic.Int64
	job := fast(fleet.Job{
		Options: backend(), Tasks: tasks(1), Out: t.TempDir(),
		Before: func(context.Context, *fleet.Task) (fleet.Decision, error) {
			return fleet.Decision{Skip: asked.Add(1) == 2, Why: "somebody else has done it"}, nil
		},
		Configure: func(context.Context, *fleet.Task, *sdk.Options) error {
			configured.Add(1)
			cancel()
			return nil
		},
	})
	for _, err := range fleet.Run(ctx, job) {
		require.Error(t, err)
	}
	require.EqualValues(t, 1, asked.Load())
	job.Resume = true
	results, err := collect(t, job)
	require.NoError(t, err)
	assert.EqualValues(t, 2, asked.Load())
	assert.EqualValues(t, 1, configured.Load(), "no session was made")
	assert.Equal(t, fleet.Skipped, results["t0"].Status)
	assert.Equal(t, "somebody else has done it", results["t0"].Error)
}
