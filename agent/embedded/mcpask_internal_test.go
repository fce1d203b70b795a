package embedded

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
)

// A server does not say which of its calls a question is about, so the question lasts until none is open.
func TestAQuestionLastsUntilNoCallIsOpen(t *testing.T) {
	t.Parallel()
	m := &server{name: "db"}
	asked := make(chan context.Context, 1)
	slow := m.asksWith(nil)
	fast := m.asksWith(func(ctx context.Context, _ agent.Object) (agent.Answer, error) {
		asked <- ctx
		<-ctx.Done()
		return agent.Answer{}, context.Cause(ctx)
	})
	answers := make(chan json.RawMessage, 1)
	go func() {
		answer, err := m.elicit(json.RawMessage(`{"message":"well?"}`))
		assert.NoError(t, err)
		answers <- answer
	}()
	ctx := <-asked
	fast()
	require.NoError(t, ctx.Err())
	slow()
	assert.JSONEq(t, `{"action":"decline"}`, string(<-answers))
}
