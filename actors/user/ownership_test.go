package user_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/user"
	"github.com/agent-troupe/troupe/session"
)

const (
	agentsInit   = `{"type":"system","subtype":"init","session_id":"s"}`
	agentsResult = `{"type":"result","subtype":"success","is_error":false,"result":"own","origin":{"kind":"task-notification"}}`
	idle         = `{"type":"system","subtype":"session_state_changed","state":"idle"}`
	running      = `{"type":"system","subtype":"session_state_changed","state":"running"}`
	taskBegins   = `{"type":"system","subtype":"task_started","task_id":"k","task_type":"local_agent","is_backgrounded":true}`
	taskSays     = `{"type":"assistant","n":7,"parent_tool_use_id":"x","agent_id":"k"}`
	taskEnds     = `{"type":"system","subtype":"task_notification","task_id":"k","status":"completed","summary":"a secret"}`
	partial      = `{"type":"stream_event","n":1}`
)

func initFor(uuid string) string {
	return fmt.Sprintf(`{"type":"system","subtype":"init","session_id":"s","user_message_uuids":[%q]}`, uuid)
}

func repeatsInit(c *sideConfig) { c.RepeatsInit = true }

// TestMessagesOfATurnAreOfThatTurn sends a and b before anything comes. It reads
// only what belongs to b.
func TestMessagesOfATurnAreOfThatTurn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lines []string
		want  []string
	}{
		"an agent that says when it begins": {
			[]string{running, lifecycle("a", "started"), initFor("a"), assistant(1), resultOf("a"), lifecycle("a", "completed"), idle,
				running, lifecycle("b", "started"), initFor("b"), partial, assistant(2), resultOf("b")},
			[]string{lifecycle("b", "started"), initFor("b"), partial, assistant(2), resultOf("b")},
		},
		"one that says it in init alone": {
			[]string{initFor("a"), assistant(1), resultOf("a"), initFor("b"), assistant(2), resultOf("b")},
			[]string{initFor("b"), assistant(2), resultOf("b")},
		},
		"one that says nothing": {
			[]string{agentsInit, assistant(1), plainResult, agentsInit, assistant(2), resultOf("b")},
			[]string{agentsInit, assistant(2), resultOf("b")},
		},
		"a turn of the agent's own between": {
			[]string{lifecycle("a", "started"), assistant(1), resultOf("a"), agentsInit, assistant(9), agentsResult,
				lifecycle("b", "started"), initFor("b"), assistant(2), resultOf("b")},
			[]string{lifecycle("b", "started"), initFor("b"), assistant(2), resultOf("b")},
		},
		"a background task of the turn before": {
			[]string{lifecycle("a", "started"), taskBegins, resultOf("a"), taskSays, lifecycle("b", "started"),
				assistant(2), taskSays, taskEnds, resultOf("b")},
			[]string{lifecycle("b", "started"), assistant(2), resultOf("b")},
		},
		"its own background task": {
			[]string{lifecycle("a", "started"), resultOf("a"), lifecycle("b", "started"), taskBegins, taskSays, taskEnds, resultOf("b")},
			[]string{lifecycle("b", "started"), taskBegins, taskSays, taskEnds, resultOf("b")},
		},
		"taken up by the turn before": {
			[]string{lifecycle("a", "started"), assistant(1), lifecycle("b", "started"), assistant(2), resultOf("a", "b")},
			[]string{lifecycle("b", "started"), assistant(2), resultOf("a", "b")},
		},
		"a result that was not announced": {
			[]string{lifecycle("a", "started"), resultOf("a"), assistant(1), resultOf("b")},
			[]string{resultOf("b")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, repeatsInit)
			r.turn("a")
			b := r.turn("b")
			r.read(c.lines...)
			lines, err := r.drain(r.consume(), b)
			require.ErrorIs(t, err, io.EOF)
			assert.Equal(t, c.want, lines)
			assert.Zero(t, r.Snapshot().Unread, "what came before was skipped")
		})
	}
}

func TestABrokenOffTurnLeavesNothingToTheNext(t *testing.T) {
	t.Parallel()
	r := newRig(t, repeatsInit)
	a := r.turn("a")
	r.read(lifecycle("a", "started"), assistant(1), assistant(2), resultOf("a"), idle)
	c := r.consume()
	_, err := c.NextOf(t.Context(), a)
	require.NoError(t, err)
	c.Release()

	b := r.turn("b")
	r.read(lifecycle("b", "started"), assistant(3), resultOf("b"))
	c = r.consume()
	lines, err := r.drain(c, b)
	require.ErrorIs(t, err, io.EOF)
	assert.Equal(t, []string{lifecycle("b", "started"), assistant(3), resultOf("b")}, lines)
	lines, err = r.drain(c, a)
	require.ErrorIs(t, err, io.EOF)
	assert.Empty(t, lines, "they were skipped")
}

func TestTheFirstTurnHasWhatCameBeforeIt(t *testing.T) {
	t.Parallel()
	r := newRig(t) // as on Qoder, where init comes once
	r.read(agentsInit)
	a := r.turn("a")
	r.read(assistant(1), resultOf("a"))
	lines, err := r.drain(r.consume(), a)
	require.ErrorIs(t, err, io.EOF)
	assert.Equal(t, []string{agentsInit, assistant(1), resultOf("a")}, lines)
}

// TestATurnOfTheAgentsOwnBeforeTheFirst is an agent that goes on by itself after
// a resume.
func TestATurnOfTheAgentsOwnBeforeTheFirst(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{"the message comes before its result": false, "or before it says anything": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, repeatsInit)
			var a *user.Turn
			if late {
				a = r.turn("a")
			}
			r.read(agentsInit, assistant(9))
			if !late {
				a = r.turn("a")
			}
			r.read(agentsResult, agentsInit, assistant(1), resultOf("a"))
			lines, err := r.drain(r.consume(), a)
			require.ErrorIs(t, err, io.EOF)
			assert.Equal(t, []string{agentsInit, assistant(1), resultOf("a")}, lines)
		})
	}
}

func TestATurnThatNeverBeganLeavesTheStreamAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t, repeatsInit)
	r.turn("a")
	b := r.turn("b")
	r.read(lifecycle("a", "started"), assistant(1), lifecycle("b", "cancelled"))
	r.requireEnded(session.ErrNotRun, b)
	c := r.consume()
	lines, err := r.drain(c, b)
	require.ErrorIs(t, err, io.EOF)
	assert.Empty(t, lines)
	lines, err = r.drain(c, nil)
	require.NoError(t, err)
	assert.Len(t, lines, 3)
}

// TestSkippingMakesRoom is a turn behind more of another one than may be held.
func TestSkippingMakesRoom(t *testing.T) {
	t.Parallel()
	r := newRig(t, repeatsInit, limits(session.Limits{Messages: 4}))
	r.turn("a")
	b := r.turn("b")
	r.read(lifecycle("a", "started"), assistant(1), assistant(2), assistant(3))
	wait := r.ReadWait(false)
	require.NotNil(t, wait, "the reader stands still")
	lines, err := r.drain(r.consume(), b)
	require.NoError(t, err)
	assert.Empty(t, lines)
	assert.True(t, isClosed(wait))
	assert.True(t, r.mayRead())
}
