package sdk

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAQuestionThatIsWithdrawnIsNotYielded(t *testing.T) {
	t.Parallel()
	var q questions
	withdrawn, open := make(chan struct{}), make(chan struct{})
	first := newAsk[ToolPermissionRequest, PermissionResult](nil)
	second := newAsk[ToolPermissionRequest, PermissionResult](nil)
	q.add(question{Update: Update{Permission: first}, place: 1, done: withdrawn})
	q.add(question{Update: Update{Permission: second}, place: 2, done: open})
	close(withdrawn)
	wait, place, asked := q.next(t.Context())
	assert.True(t, asked)
	assert.Equal(t, uint64(2), place)
	assert.ErrorIs(t, context.Cause(wait), errAsked, "only what is there is read")
	assert.Same(t, second, q.take().Permission)
	_, _, asked = q.next(t.Context())
	assert.False(t, asked)
	assert.Zero(t, q.take())
	q.rest()
}
