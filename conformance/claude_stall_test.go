//go:build conformance

package conformance_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// stalls is options whose turns stall after the limit, and how often one did.
func (r *rig) stalls(limit time.Duration) (*sdk.Options, *atomic.Int64) {
	o, n := r.options(), new(atomic.Int64)
	o.Limits.Stall = limit
	o.OnEvent = func(e session.EventRecord) {
		defer r.record(e)
		if _, ok := e.Event.(*session.TurnStalled); ok {
			n.Add(1)
		}
	}
	return o, n
}

// A turn whose model never answers is interrupted; the messages behind it stay.
func TestAStalledTurnIsInterrupted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o, stalled := r.stalls(10 * time.Second) // the agent asks the model within it
	c := r.connect(o)
	first, second := r.hanging(c)
	result, err := first.Result(r.ctx)
	require.NoError(t, err)
	assert.True(t, result.Interrupted())
	result, err = second.Result(r.ctx)
	require.NoError(t, err)
	assert.Equal(t, "second", result.Result)
	r.close(c)
	assert.EqualValues(t, 1, stalled.Load())
}

// A command, a person and a hook that take longer than the limit are no stall.
func TestWhatTakesLongIsNoStall(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const limit = 6 * time.Second // the agent goes from one to the next within it
	o, stalled := r.stalls(limit)
	long := func(ctx context.Context) {
		select {
		case <-time.After(limit + 2*time.Second):
		case <-ctx.Done():
		}
	}
	o.CanUseTool = func(ctx context.Context, _ *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		long(ctx)
		return sdk.Allow(), nil
	}
	o.Hooks = []sdk.Hook{sdk.OnPostToolUse(func(ctx context.Context, _ *protocol.PostToolUseInput) (sdk.PostToolUseOutput, error) {
		long(ctx)
		return sdk.PostToolUseOutput{}, nil
	})}
	r.model.Script("long", modelapi.Say(shell("touch made && sleep 8")), modelapi.Say(modelapi.Text("Done.")))
	_, result := r.once(o, "take your time [[scn:long]]")
	assert.Equal(t, "Done.", result.Result)
	assert.FileExists(t, r.at("made"))
	assert.Zero(t, stalled.Load())
}
