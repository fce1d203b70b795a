package model_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/model"
)

const anAnswer = `data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"x","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}

data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}

data: {"type":"message_stop"}

`

// ending is an endpoint whose stream ends when end says so, some time behind the last event.
// made counts connections.
func ending(t *testing.T, end func(ctx context.Context)) (url string, made *atomic.Int64) {
	t.Helper()
	made = &atomic.Int64{}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, anAnswer)
		w.(http.Flusher).Flush()
		end(r.Context())
	}))
	s.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			made.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s.URL, made
}

// The end of a stream is waited for, so the next request uses the same connection.
func TestTheConnectionIsUsedAgain(t *testing.T) {
	t.Parallel()
	stopped := make(chan struct{}, 1)
	url, made := ending(t, func(ctx context.Context) {
		select {
		case <-stopped:
		case <-ctx.Done():
		}
	})
	m := model.NewAnthropic(model.AnthropicConfig{Config: model.Config{URL: url, AfterFunc: func(time.Duration, func()) func() bool { return func() bool { return true } }}})
	for range 3 {
		require.NoError(t, m.Stream(t.Context(), &model.Request{}, func(e *model.Event) bool {
			if e.Kind == model.Stop {
				stopped <- struct{}{}
			}
			return true
		}))
	}
	assert.EqualValues(t, 1, made.Load())
}

// A server that does not end its stream delays the answer only by the limit.
func TestAStreamThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	url, _ := ending(t, func(ctx context.Context) { <-ctx.Done() })
	var last model.Kind
	m := model.NewAnthropic(model.AnthropicConfig{Config: model.Config{URL: url, AfterFunc: func(d time.Duration, fn func()) func() bool {
		if d > time.Second { // the limit of silence
			return func() bool { return true }
		}
		return time.AfterFunc(0, fn).Stop
	}}})
	require.NoError(t, m.Stream(t.Context(), &model.Request{}, func(e *model.Event) bool {
		last = e.Kind
		return true
	}))
	assert.Equal(t, model.Stop, last)
}
