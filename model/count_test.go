package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/model"
)

func TestCountTokens(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		answer string
		want   int
		class  model.Class
		text   string
	}{
		"a number":    {200, `{"input_tokens":30001}`, 30001, "", ""},
		"none":        {200, `{"input_tokens":0}`, 0, "", ""},
		"not counted": {404, `{"error":{"type":"not_found_error","message":"no such endpoint"}}`, 0, model.Invalid, "no such endpoint"},
		"the key":     {401, `{"error":{"message":"bad key sk-secret"}}`, 0, model.Auth, "bad key [key]"},
		"a page":      {200, `<html>`, 0, model.Broken, "in place of a number of tokens"},
		"no member":   {200, `{"tokens":1}`, 0, model.Broken, "in place of a number of tokens"},
		"below zero":  {200, `{"input_tokens":-1}`, 0, model.Broken, "in place of a number of tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				assert.Equal(t, "/v1/messages/count_tokens", r.URL.Path)
				assert.Equal(t, "sk-secret", r.Header.Get("X-Api-Key"))
				var body map[string]any
				assert.NoError(t, json.NewDecoder(r.Body).Decode(&body))
				assert.Equal(t, map[string]any{"model": "m", "messages": []any{map[string]any{"role": "user", "content": "one\n"}}}, body)
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.answer))
			}))
			t.Cleanup(server.Close)
			m := model.NewAnthropic(model.AnthropicConfig{Config: model.Config{URL: server.URL + "/v1", Key: func(context.Context) (string, error) { return "sk-secret", nil }}})
			n, err := m.CountTokens(t.Context(), "m", "one\n")
			assert.Equal(t, c.want, n)
			if c.text == "" {
				require.NoError(t, err)
				return
			}
			var e *model.Error
			require.ErrorAs(t, err, &e)
			assert.Equal(t, c.class, e.Class)
			assert.ErrorContains(t, err, c.text)
		})
	}
}

// A count is not waited for: an endpoint that says nothing has five seconds, and the caller may
// leave at any time.
func TestACountThatDoesNotCome(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(server.Close)
	var limits []time.Duration
	timers := func(d time.Duration, fn func()) func() bool { // the time is over at once
		limits = append(limits, d)
		return time.AfterFunc(0, fn).Stop
	}
	m := model.NewAnthropic(model.AnthropicConfig{Config: model.Config{URL: server.URL, AfterFunc: timers}})
	_, err := m.CountTokens(t.Context(), "m", "x")
	require.ErrorIs(t, err, model.ErrSilent)
	total := time.Duration(0)
	for _, d := range limits {
		total += d
	}
	assert.InDelta(t, 5, total.Seconds(), 1.3)

	left := errors.New("the caller has left")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(left)
	_, err = m.CountTokens(ctx, "m", "x")
	require.ErrorIs(t, err, left)

	_, err = model.NewOpenAI(model.OpenAIConfig{Config: model.Config{URL: server.URL}}).CountTokens(t.Context(), "m", "x")
	require.ErrorIs(t, err, errors.ErrUnsupported)
}
