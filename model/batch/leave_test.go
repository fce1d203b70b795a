package batch_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/batch"
	"github.com/agent-troupe/troupe/model/modeltest"
)

// locked is an endpoint that takes the key no more while it is shut.
type locked struct {
	*modeltest.Server
	shut atomic.Bool
}

func (l *locked) RoundTrip(in *http.Request) (*http.Response, error) {
	resp, err := l.Server.RoundTrip(in)
	if err == nil && l.shut.Load() {
		resp.StatusCode = http.StatusUnauthorized
	}
	return resp, err
}

// A caller that leaves just when its batch has an error does not give its request back twice: each of two
// later callers with the same request gets an answer.
func TestACallerThatLeavesWithAnError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &modeltest.Server{Script: echo, BatchTakes: time.Hour}
		at := &locked{Server: s}
		c := batch.New(batch.Config{Model: s.Anthropic(model.Config{Client: &http.Client{Transport: at}})})
		r := &model.Request{
			Model: "claude-sonnet-4-5", MaxTokens: 100, User: "a", Cache: true,
			Messages: [][]byte{c.Codec().Message(&model.Message{Role: model.User, Blocks: []model.Block{{Kind: model.Text, Text: "a"}}})},
		}
		err := c.Stream(t.Context(), r, func(e *model.Event) bool {
			if e.Batch == "" {
				return true
			}
			at.shut.Store(true)
			time.Sleep(10 * time.Minute) // until the endpoint was asked about the batch
			return false
		})
		require.ErrorIs(t, err, model.ErrStopped)
		at.shut.Store(false)
		soon, cancel := context.WithTimeout(t.Context(), 12*time.Hour)
		defer cancel()
		answers(t, askAll(soon, c, "a", "a"), "a", "a")
		assert.Len(t, s.Requests(), 2, "the one that was given back, and one more")
	})
}
