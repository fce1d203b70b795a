package runtime_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
)

// TestWatchTakesNothing has two loops beside the consumer of a session, which gets all.
func TestWatchTakesNothing(t *testing.T) {
	t.Parallel()
	rt, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	defer func() { assert.NoError(t, rt.Shutdown(context.Background())) }()
	script := &scripted.Script{Default: scripted.Steps{scripted.Text("the answer")}}
	s, err := rt.Open(t.Context(), runtime.Spec{Dialect: claude.New(), Program: scripted.New(scripted.WithScript(script))})
	require.NoError(t, err)
	kinds := make(chan []string, 2)
	var begun atomic.Int32
	both := make(chan struct{})
	for range 2 {
		go func() {
			var all []string
			first := true
			for m := range s.Watch(context.Background()) {
				if first && begun.Add(1) == 2 {
					close(both)
				}
				first = false
				assert.Zero(t, m.Lost)
				assert.False(t, m.At.IsZero())
				assert.NotEmpty(t, m.Raw)
				switch m := m.Message.(type) {
				case *protocol.UserMessage:
					all = append(all, "user")
				case *protocol.AssistantMessage:
					all = append(all, "assistant "+protocol.TextOf(m))
				case *protocol.ResultMessage:
					all = append(all, "result")
				}
			}
			kinds <- all // the session has ended
		}()
	}
	read := 0
	for enough := false; ; { // until both loops have begun, and once more
		select {
		case <-both:
			enough = true
		case <-time.After(time.Millisecond): // a loop that is not there yet sees the next turn
		}
		_, err = s.Send(t.Context(), &protocol.UserMessage{Message: protocol.UserContent{Role: "user", Content: protocol.StringContent("go")}})
		require.NoError(t, err)
		for m, err := range s.Messages(t.Context()) {
			require.NoError(t, err)
			read++
			if _, over := m.(*protocol.ResultMessage); over {
				break
			}
		}
		if enough {
			break
		}
	}
	assert.Positive(t, read)
	require.NoError(t, s.Close(t.Context()))
	for range 2 {
		all := <-kinds
		require.GreaterOrEqual(t, len(all), 3)
		assert.Equal(t, []string{"user", "assistant the answer", "result"}, all[len(all)-3:])
	}
}

// A loop has the messages that came between the call and its start, too.
func TestWatchBeginsWithTheCall(t *testing.T) {
	t.Parallel()
	rt, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	defer func() { assert.NoError(t, rt.Shutdown(context.Background())) }()
	script := &scripted.Script{Default: scripted.Steps{scripted.Text("the answer")}}
	s, err := rt.Open(t.Context(), runtime.Spec{Dialect: claude.New(), Program: scripted.New(scripted.WithScript(script))})
	require.NoError(t, err)
	messages := s.Watch(t.Context())
	turn, err := s.Send(t.Context(), &protocol.UserMessage{Message: protocol.UserContent{Role: "user", Content: protocol.StringContent("go")}})
	require.NoError(t, err)
	_, err = turn.Result(t.Context())
	require.NoError(t, err)
	for m := range messages {
		if _, is := m.Message.(*protocol.UserMessage); is {
			return
		}
	}
	t.Error("the prompt is missing")
}
