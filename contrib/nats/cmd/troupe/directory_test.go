package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/command"
)

// A job that is over is open again after a requeue, however often its end is said and taken back. One that is
// being removed is not.
func TestWhereAJobStands(t *testing.T) {
	t.Parallel()
	c, _, err := machines{}.Listen(t.Context(), command.Servers{URLs: "127.0.0.1:0"}, t.TempDir())
	require.NoError(t, err)
	defer c.Close()
	ctx := t.Context()
	stands := func() command.JobState {
		all, err := c.Jobs(ctx)
		require.NoError(t, err)
		require.Len(t, all, 1)
		return all[0].State
	}
	require.NoError(t, c.Submit(ctx, command.JobEntry{Job: "j", State: command.JobOpen, Agent: "scripted"}, []byte("{}")))
	require.NoError(t, c.NotOver(ctx, "j"))
	for range 2 {
		for range 2 {
			require.NoError(t, c.Over(ctx, "j"))
		}
		assert.Equal(t, command.JobOver, stands())
		require.NoError(t, c.NotOver(ctx, "j"))
		assert.Equal(t, command.JobOpen, stands())
	}
	require.NoError(t, c.Over(ctx, "j"))
	require.NoError(t, c.Reopen(ctx, "j"))
	assert.Equal(t, command.JobOpen, stands())
	d, is := c.(*directory)
	require.True(t, is)
	require.NoError(t, d.state(ctx, "j", command.JobRemoving))
	require.ErrorIs(t, c.Reopen(ctx, "j"), command.ErrNoJob)
	assert.Equal(t, command.JobRemoving, stands())
	require.NoError(t, c.Remove(ctx, "j"))
	require.ErrorIs(t, c.Reopen(ctx, "j"), command.ErrNoJob)
}
