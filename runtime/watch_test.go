package runtime_test

import (
	"context"
	"sync"
	"testing"

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
	begun := make(chan struct{}, 2)
	for range 2 {
		messages := s.Watch(context.Background())
		go func() {
			var once sync.Once
			var all []string
			for m := range messages {
				once.Do(func() { begun <- struct{}{} })
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
	var want []string
	for n := range 3 {
		_, err = s.Send(t.Context(), &protocol.UserMessage{Message: protocol.UserContent{Role: "user", Content: protocol.StringContent("go")}})
		require.NoError(t, err)
		read := 0
		for m, err := range s.Messages(t.Context()) {
			require.NoError(t, err)
			read++
			if _, over := m.(*protocol.ResultMessage); over {
				break
			}
		}
		assert.Positive(t, read)
		want = append(want, "user", "assistant the answer", "result")
		if n == 0 { // the other turns come while the loops run
			<-begun
			<-begun
		}
	}
	require.NoError(t, s.Close(t.Context()))
	for range 2 {
		assert.Equal(t, want, <-kinds)
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
