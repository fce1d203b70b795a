package sdk

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAClaimThatNobodyWaitedFor(t *testing.T) {
	t.Parallel()
	c := NewClient(nil)
	refused := &ControlError{Request: "claim_session", Message: "not_a_spare: it has a session"}
	assert.Equal(t, error(refused), c.claimError(refused), "it was none before")
	require.NoError(t, c.claimError(nil))

	err := c.claimError(context.Canceled)
	require.ErrorIs(t, err, ErrClaimUnsure)
	require.ErrorIs(t, err, context.Canceled)
	err = c.claimError(refused)
	require.ErrorIs(t, err, ErrClaimTaken)
	require.ErrorIs(t, err, refused)
	other := errors.New("cwd_not_found")
	assert.Equal(t, other, c.claimError(other))
}
