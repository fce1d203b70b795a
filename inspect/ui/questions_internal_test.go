package ui

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/internal/kernel"
)

// An answer is kept while its host is there. A question to a closed window starts nothing.
func TestQuestionsThatAreKept(t *testing.T) {
	t.Parallel()
	w := &Window{exec: kernel.GoExecutor{}, clock: kernel.NewClock(nil)}
	ask := func(what string, answer any, err error) any {
		q := w.asks.put(t.Context(), w, asking{what, "77"}, func(context.Context) (any, error) { return answer, err })
		return q.await(t.Context(), w)
	}
	assert.Equal(t, "a", ask("report", "a", nil))
	assert.Nil(t, ask("job 1", nil, nil))
	assert.Nil(t, ask("jobs", "b", errors.New("no answer")))
	w.asks.keep([]Host{Socket("/77.sock")})
	assert.Len(t, w.asks.all, 1)
	w.asks.close()
	assert.Equal(t, "a", ask("report", "c", nil), "the last answer")
	w.asks.keep(nil)
	assert.Empty(t, w.asks.all)
}
