package acpagent_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// An agent has died between two prompts, and what it wrote is not read yet. The next prompt goes to the next agent.
func TestPromptWhileADeadAgentIsShown(t *testing.T) {
	t.Parallel()
	c := onDisk(t, `
turns:
- steps: [text: Works., shell: {command: make, takes: 50ms, then: [partial: {text: many words that nobody reads yet, chunk: 1}, exit: {signal: KILL}]}]
default: [text: "fresh ${prompt}"]
resumed:
- steps: [text: Goes on.]
`)
	c.NoRecovery = true
	dead := make(chan struct{})
	die := sync.OnceFunc(func() { close(dead) })
	c.Options.OnEvent = func(r sdk.EventRecord) {
		if _, ended := r.Event.(*session.Ended); ended {
			die()
		}
	}
	e := newEditor(t, c)
	s := e.open(nil)
	require.Equal(t, "end_turn", e.ask(s, "first"))

	e.mu.Lock() // the editor reads nothing
	select {
	case <-dead:
	case <-time.After(patience):
		t.Error("the agent does not end")
	}
	e.last++
	id := e.last
	e.write(object{"jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": prompt(s, "second")})
	e.notify("x", nil) // it is taken when the prompt has begun
	e.mu.Unlock()
	assert.Contains(t, e.answer(id).raw, "end_turn")
	assert.Contains(t, e.told(), "agent_message_chunk Goes on.")
}
