package user_test

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/user"
)

const (
	strayResult = `{"type":"result","subtype":"success","is_error":false,"result":"stray"}`
	promptHook  = `{"type":"control_request","request_id":"h","request":{"subtype":"hook_callback","callback_id":"x","input":{"hook_event_name":"UserPromptSubmit"}}}`
)

// TestAResultBeforeItsTurn is the reader's view of it: the last message of a turn has the
// result that the turn has.
func TestAResultBeforeItsTurn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lines []string
		want  string
	}{
		"the turn begins":         {[]string{strayResult, agentsInit, assistant(1), plainResult}, "ok"},
		"the agent is idle":       {[]string{strayResult, idle}, "stray"},
		"it writes messages late": {[]string{strayResult, assistant(1), plainResult}, "stray"},
		"a turn of the agent's":   {[]string{agentsInit, agentsResult, strayResult, agentsInit, plainResult}, "ok"},
		"init names the message":  {[]string{strayResult, initFor("a"), resultOf("a")}, "ok"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, repeatsInit)
			a := r.turn("a")
			for _, line := range c.lines {
				r.read(line)
			}
			result, err := a.Result()
			require.NoError(t, err)
			assert.Equal(t, c.want, result.Result)
			lines, err := r.drain(r.consume(), a)
			require.ErrorIs(t, err, io.EOF)
			assert.Contains(t, lines[len(lines)-1], `"result":"`+c.want+`"`)
		})
	}
}

// TestAMinimalAgent sends results and nothing else. Only the first is waited for.
func TestAMinimalAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t, repeatsInit)
	a, b := r.turn("a"), r.turn("b")
	r.read(plainResult, plainResult)
	assert.False(t, isClosed(a.Done()))
	pass(t, r.sched, time.Second)
	r.requireEnded(nil, a, b)
	c := r.turn("c")
	r.read(plainResult)
	r.requireEnded(nil, c)
	reader := r.consume()
	for _, turn := range []*user.Turn{a, b, c} {
		lines, err := r.drain(reader, turn)
		require.ErrorIs(t, err, io.EOF)
		assert.Equal(t, []string{plainResult}, lines)
	}
}

// TestAReaderWaitsForTheWordAboutAResult: the loop of a turn must not skip what may
// be its own.
func TestAReaderWaitsForTheWordAboutAResult(t *testing.T) {
	t.Parallel()
	r := newRig(t, repeatsInit)
	r.turn("a")
	b := r.turn("b")
	r.read(agentsInit, assistant(1), plainResult, plainResult)
	c := r.consume()
	lines, err := r.drain(c, b)
	require.NoError(t, err)
	assert.Empty(t, lines)
	pass(t, r.sched, time.Second)
	lines, err = r.drain(c, b)
	require.ErrorIs(t, err, io.EOF)
	assert.Equal(t, []string{plainResult}, lines)
}
