package model_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/model"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// atEnd calls a function and is at its end.
type atEnd func()

func (f atEnd) Read([]byte) (int, error) {
	f()
	return 0, io.EOF
}

// Answers of a batch whose request was given up are not all, though they end as if they were.
func TestAnswersOfABatchThatAreCut(t *testing.T) {
	t.Parallel()
	why := errors.New("the host stops")
	ctx, cancel := context.WithCancelCause(t.Context())
	m := model.NewAnthropic(model.AnthropicConfig{Config: model.Config{
		URL: "https://api.example/v1", Key: func(context.Context) (string, error) { return "k", nil },
		Client: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			line := `{"custom_id":"a","result":{"type":"succeeded","message":{"content":[]}}}` + "\n"
			body := io.MultiReader(strings.NewReader(line), atEnd(func() { cancel(why) }))
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(body), Request: r}, nil
		})},
	}})
	n := 0
	err := m.BatchResults(ctx, &model.Batch{ID: "msgbatch_1", Over: true}, func(*model.BatchAnswer) bool { n++; return true })
	require.ErrorIs(t, err, why)
	assert.Equal(t, 1, n)
}
