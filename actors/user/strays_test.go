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

// TestAResultBeforeItsTurn is a result that names no message, and comes after the
// first message was written and before the agent says anything of it.
func TestAResultBeforeItsTurn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after []string
		want          string // the result that the turn has; "": none yet
	}{
		"the turn begins":                 {[]string{strayResult}, []string{agentsInit, assistant(1), plainResult}, "ok"},
		"several":                         {[]string{strayResult, strayResult}, []string{agentsInit, assistant(1), plainResult}, "ok"},
		"the agent runs":                  {[]string{strayResult}, []string{running, agentsInit, assistant(1), plainResult}, "ok"},
		"the turn begins, and has no end": {[]string{strayResult}, []string{agentsInit, assistant(1)}, ""},
		"the agent names the message":     {[]string{strayResult}, []string{lifecycle("a", "started"), plainResult}, "ok"},
		"the hook of the prompt":          {[]string{strayResult}, []string{promptHook}, ""},
		"the next message says nothing":   {[]string{strayResult}, []string{`{"type":"system","subtype":"hook_started"}`}, ""},

		"the message is completed": {[]string{strayResult}, []string{lifecycle("a", "completed")}, "stray"},
		"another one is completed": {[]string{strayResult}, []string{lifecycle("b", "completed")}, ""},
		"nothing but a result":     {[]string{strayResult}, nil, "stray"},
		"the agent is idle":        {[]string{strayResult}, []string{idle}, "stray"},
		"an agent without init":    {[]string{assistant(1), plainResult}, nil, "ok"},
		"that writes them late":    {[]string{strayResult}, []string{assistant(1), plainResult}, "stray"},
		"a result that says it":    {[]string{resultOf("a")}, nil, "ok"},
		"init came before":         {[]string{agentsInit, strayResult}, nil, "stray"},
		"the agent ran before":     {[]string{running, strayResult}, []string{agentsInit}, "stray"},
		"a turn of the agent's":    {[]string{agentsInit, agentsResult, strayResult}, []string{agentsInit, plainResult}, "ok"},
		"the message was echoed":   {[]string{`{"type":"user","uuid":"a","isReplay":true}`, strayResult}, nil, "stray"},
		"init names the message":   {[]string{strayResult}, []string{initFor("a"), resultOf("a")}, "ok"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, repeatsInit)
			a := r.turn("a")
			r.read(c.before...)
			r.read(c.after...)
			if c.want == "stray" && !isClosed(a.Done()) {
				pass(t, r.sched, time.Second)
			}
			if c.want == "" {
				require.False(t, isClosed(a.Done()))
				return
			}
			require.True(t, isClosed(a.Done()))
			result, err := a.Result()
			require.NoError(t, err)
			assert.Equal(t, c.want, result.Result)
			lines, err := r.drain(r.consume(), a)
			require.ErrorIs(t, err, io.EOF)
			assert.Contains(t, lines[len(lines)-1], `"result":"`+c.want+`"`, "the last message of the turn")
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

// TestATurnInterruptedBeforeItBegan has a bare result, and the next message's turn
// begins at once: that result is not dropped, and each turn has its own.
func TestATurnInterruptedBeforeItBegan(t *testing.T) {
	t.Parallel()
	for name, begins := range map[string][]string{"init": nil, "the hook of the prompt": {promptHook}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, repeatsInit)
			a, b := r.turn("a"), r.turn("b")
			r.read(strayResult)
			r.read(begins...)
			r.read(agentsInit, assistant(1), plainResult)
			for turn, want := range map[*user.Turn]string{a: "stray", b: "ok"} {
				require.True(t, isClosed(turn.Done()))
				result, err := turn.Result()
				require.NoError(t, err)
				assert.Equal(t, want, result.Result)
			}
		})
	}
}

func TestAResultIsOfItsTurnWhenTheAgentEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*side){
		"its output ends": (*side).EndOfInput,
		"a close":         func(l *side) { l.BeginClosing(true) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, repeatsInit)
			a := r.turn("a")
			r.read(plainResult)
			end(r.side)
			r.requireEnded(nil, a)
		})
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
