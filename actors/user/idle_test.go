package user_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

const (
	agentRuns = `{"type":"system","subtype":"session_state_changed","state":"running"}`
	agentIdle = `{"type":"system","subtype":"session_state_changed","state":"idle"}`
)

func taskStarted(id, more string) string {
	return fmt.Sprintf(`{"type":"system","subtype":"task_started","task_id":%q%s}`, id, more)
}

func taskEnded(id string) string {
	return fmt.Sprintf(`{"type":"system","subtype":"task_notification","task_id":%q,"status":"completed"}`, id)
}

func taskLevel(ids ...string) string {
	type task struct {
		ID string `json:"task_id"`
	}
	tasks := make([]task, len(ids))
	for i, id := range ids {
		tasks[i].ID = id
	}
	b, _ := json.Marshal(tasks) // strings cannot fail
	return fmt.Sprintf(`{"type":"system","subtype":"background_tasks_changed","tasks":%s}`, b)
}

// awaitIdle starts a wait and returns when it was over, in virtual time since
// now; a negative duration is a wait that goes on.
func (r *rig) awaitIdle() func() time.Duration {
	start, over := r.sched.Now(), time.Duration(-1)
	r.sched.Go(func() {
		assert.NoError(r.t, r.AwaitIdle(context.Background()))
		over = r.sched.Now().Sub(start)
	})
	return func() time.Duration {
		r.t.Helper()
		require.NoError(r.t, r.sched.Run(1000))
		return over
	}
}

func TestIdle(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lines []string // after turn a was written
		idle  bool
		after time.Duration
	}{
		"a turn is open":                      {nil, false, 0},
		"its result came":                     {[]string{resultOf("a")}, true, 0},
		"the agent says that it still runs":   {[]string{agentRuns, resultOf("a")}, false, 0},
		"and that it is idle":                 {[]string{agentRuns, resultOf("a"), agentIdle}, true, 0},
		"it asks for an action":               {[]string{`{"type":"system","subtype":"session_state_changed","state":"requires_action"}`, resultOf("a")}, false, 0},
		"a task lives":                        {[]string{taskStarted("t", ""), resultOf("a")}, false, 0},
		"the task ended in the turn":          {[]string{taskStarted("t", ""), taskEnded("t"), resultOf("a")}, true, 0},
		"the task ended after the turn":       {[]string{taskStarted("t", ""), resultOf("a"), taskEnded("t")}, true, time.Second},
		"a turn of the agent's came of it":    {[]string{taskStarted("t", ""), resultOf("a"), taskEnded("t"), `{"type":"result","origin":{"kind":"task-notification"}}`}, true, 0},
		"one of the agent's is under way":     {[]string{taskStarted("t", ""), resultOf("a"), taskEnded("t"), agentRuns}, false, 0},
		"one of two tasks ended":              {[]string{taskStarted("t", ""), taskStarted("u", ""), resultOf("a"), taskEnded("u")}, false, 0},
		"the task is not in the background":   {[]string{taskStarted("t", `,"is_backgrounded":false`), resultOf("a")}, true, 0},
		"the level has a task":                {[]string{taskLevel("t"), resultOf("a")}, false, 0},
		"the level is empty":                  {[]string{taskLevel("t"), resultOf("a"), taskLevel()}, true, time.Second},
		"edges do not count beside a level":   {[]string{taskLevel(), taskStarted("t", ""), resultOf("a")}, true, 0},
		"nor do they empty it":                {[]string{taskLevel("t"), resultOf("a"), taskEnded("t")}, false, 0},
		"what cannot be read changes nothing": {[]string{`{"type":"system","subtype":"background_tasks_changed","tasks":7}`, `{"type":"system","subtype":"session_state_changed","state":7}`, resultOf("a")}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.turn("a")
			r.read(c.lines...)
			over := r.awaitIdle()()
			if !c.idle {
				require.Negative(t, over)
				r.Terminate(nil)
				require.NoError(t, r.sched.Run(1000))
				return
			}
			assert.Equal(t, c.after, over)
		})
	}
}

func TestTheQuietPeriodStartsAnew(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.read(taskLevel("t"), taskLevel())
	over := r.awaitIdle()
	// 400 ms later the agent starts a turn of its own, which starts a task.
	r.sched.AfterFunc(400*time.Millisecond, func() { r.read(agentRuns, taskLevel("u"), plainResult, agentIdle) })
	r.sched.AfterFunc(3*time.Second, func() { r.read(taskLevel()) })
	assert.Equal(t, 4*time.Second, over())
}

func TestTheEndOfASessionIsIdle(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.turn("a")
	r.read(taskLevel("t"), agentRuns)
	over := r.awaitIdle()
	require.Negative(t, over())
	r.Terminate(errors.New("broken"))
	assert.Zero(t, over())
}

func TestWaitingForIdleEndsWithItsContext(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.turn("a")
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	r.sched.AfterFunc(time.Minute, func() { cancel(enough) })
	require.ErrorIs(t, r.AwaitIdle(ctx), enough)
}

func TestFactsOfTheAgent(t *testing.T) {
	t.Parallel()
	r := newRaw(t)
	assert.Nil(t, r.Initialized())
	assert.Empty(t, r.Capabilities())
	assert.Empty(t, r.SessionID())
	assert.Empty(t, r.LastFailure())

	r.read(success("troupe-1", `{"capabilities":["a","b"]}`))
	assert.Equal(t, []string{"a", "b"}, r.Capabilities())
	r.Capabilities()[0] = "x"
	assert.Equal(t, []string{"a", "b"}, r.Capabilities(), "a copy")

	r.read(`{"type":"system","subtype":"init","session_id":"one","capabilities":["c"]}`)
	assert.Equal(t, "one", r.SessionID())
	assert.Equal(t, []string{"c"}, r.Capabilities(), "each system/init replaces them")
	r.read(`{"type":"conversation_reset","session_id":"one"}`, `{"type":"system","subtype":"init","session_id":"two"}`)
	assert.Equal(t, "two", r.SessionID(), "the id after /clear comes with the next system/init")
	r.read(taskLevel("z", "y"))
	assert.Equal(t, []protocol.BackgroundTask{{TaskID: "y"}, {TaskID: "z"}}, r.BackgroundTasks())
	assert.Equal(t, 2, r.Snapshot().BackgroundTasks)

	r = newRaw(t)
	r.read(`{"type":"control_response","response":{"subtype":"success","request_id":"troupe-1"}}`)
	assert.JSONEq(t, "null", string(r.Initialized()), "an answer without a response is one")
}

func TestReadyIsToldOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	assert.False(t, isClosed(r.Ready()))
	r.MarkReady()
	r.MarkReady()
	assert.True(t, isClosed(r.Ready()))

	r = newRig(t)
	r.Terminate(nil)
	assert.True(t, isClosed(r.Ready()), "the end is an answer, too")
}

func TestATurnThatAnInterruptCancelledIsOver(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.turn("a")
	over := r.awaitIdle()
	require.Negative(t, over())
	call := r.call("interrupt")
	r.read(success(call.ID, `{"cancelled":["a"]}`))
	assert.Zero(t, over())
}

func TestTasksAreBounded(t *testing.T) {
	t.Parallel()
	const most = 4096
	id := func(i int) string { return fmt.Sprintf("%0256d", i) }
	for name, start := range map[string]func(r *rig, n int){
		"one by one": func(r *rig, n int) {
			for i := range n {
				r.read(taskStarted(id(i), ""))
			}
		},
		"as a level": func(r *rig, n int) {
			ids := make([]string, n)
			for i := range ids {
				ids[i] = id(i)
			}
			r.read(taskLevel(ids...))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			start(r, most)
			assert.Len(t, r.BackgroundTasks(), most)
			r.read(taskStarted(id(0), "")) // it is known
			assert.Empty(t, r.events)
			start(r, most+100)
			assert.Len(t, r.BackgroundTasks(), most)
			warnings := eventsOf[*session.WarningIssued](r)
			require.Len(t, warnings, 1, "it is said once")
			assert.Contains(t, warnings[0].Problem, "4096")
		})
	}
	t.Run("an id that is too long", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.read(taskStarted(id(1)+"x", ""))
		assert.Empty(t, r.BackgroundTasks())
		assert.Len(t, eventsOf[*session.WarningIssued](r), 1)
		assert.Zero(t, r.awaitIdle()(), "it is not waited for")
	})
}

func TestTheEndLeavesNoTimer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.read(taskStarted("a", ""), taskEnded("a"), taskStarted("b", ""), taskEnded("b"))
	start := r.sched.Now()
	r.Terminate(nil)
	require.NoError(t, r.sched.Run(100))
	assert.Equal(t, start, r.sched.Now(), "nothing is waited for")
}
