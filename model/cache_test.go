package model_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/model"
)

// Marks for an hour are on the wire, and what is written for an hour is counted apart and has
// its own price.
func TestLongCache(t *testing.T) {
	t.Parallel()
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		body = string(b)
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range []string{
			`{"type":"message_start","message":{"id":"m1","model":"m","usage":{"input_tokens":1,"output_tokens":1,"cache_creation_input_tokens":30,"cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20}}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"x"}}`, `{"type":"content_block_stop","index":0}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}`, `{"type":"message_stop"}`,
		} {
			_, _ = fmt.Fprintf(w, "data: %s\n\n", e)
		}
	}))
	t.Cleanup(server.Close)
	m := model.NewAnthropic(model.AnthropicConfig{Config: model.Config{URL: server.URL}, LongCache: true})
	said := m.Codec().Message(&model.Message{Role: model.User, Blocks: []model.Block{{Kind: model.Text, Text: "hi"}}})
	var last model.Usage
	err := m.Stream(t.Context(), &model.Request{Model: "m", System: []string{"s"}, Messages: [][]byte{said}, Cache: true}, func(e *model.Event) bool {
		last = e.Usage
		return true
	})
	require.NoError(t, err)
	assert.Contains(t, body, `{"type":"text","text":"s","cache_control":{"type":"ephemeral","ttl":"1h"}}`)
	assert.Contains(t, body, `{"type":"text","text":"hi","cache_control":{"type":"ephemeral","ttl":"1h"}}`)
	assert.Equal(t, 30, last.CacheWrite)
	assert.Equal(t, 20, last.CacheHour)
	u := model.Usage{CacheWrite: 3e6, CacheHour: 2e6}
	assert.InDelta(t, 1*5+2*2*4, model.Price{Input: 4, CacheWrite: 5}.Cost(u), 1e-9)
	assert.InDelta(t, 1*5+2*7, model.Price{Input: 4, CacheWrite: 5, CacheHour: 7}.Cost(u), 1e-9)
	assert.NotEmpty(t, model.DefaultProfiles().Date)
}
