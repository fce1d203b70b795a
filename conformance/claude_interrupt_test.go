//go:build conformance

package conformance_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

func checkInterruptWhileTheModelStreams(t *testing.T, rel release) {
	r := rel.rig(t)
	r.model.Script("stuck", modelapi.Always(modelapi.Reply{
		Blocks: []modelapi.Block{modelapi.Text("begun, not ended")}, Chunks: 2, ChunkDelay: time.Hour,
	}))
	o := r.options()
	o.IncludePartialMessages = true
	c := r.connect(o)
	turn := r.send(c, "talk [[scn:stuck]]")
	var all []sdk.Message
	for m, err := range turn.Messages(r.ctx) {
		require.NoError(t, err)
		all = append(all, m)
		if p, ok := m.(*sdk.PartialAssistantMessage); ok && p.Text() != "" {
			receipt, err := c.Interrupt(r.ctx) // from inside the consuming loop
			require.NoError(t, err)
			assert.Empty(t, receipt.StillQueued)
		}
	}
	result, err := turn.Result(r.ctx)
	require.NoError(t, err)
	assert.Equal(t, "error_during_execution", result.Subtype)
	assert.Equal(t, "aborted_streaming", result.TerminalReason)
	said := only[*sdk.AssistantMessage](all)
	require.Len(t, said, 1)
	assert.Equal(t, rel.aborted, said[0].Aborted)
	assert.Equal(t, "begun, n", sdk.TextOf(said[0]))

	_, after := r.ask(c, "and now [[scn:text]]")
	assert.False(t, after.Failed(), "the session goes on")
	r.close(c)
}

func checkInterruptWhileAToolRuns(t *testing.T, rel release) {
	r := rel.rig(t)
	prompt, running := r.hold()
	o := r.options()
	o.AllowedTools = []string{"Bash"}
	c := r.connect(o)
	turn := r.send(c, prompt)
	running()
	_, err := c.Interrupt(r.ctx)
	require.NoError(t, err)
	all, err := sdk.Collect(turn.Messages(r.ctx))
	require.NoError(t, err)
	// The agent does not wait for the end of what it has killed.
	require.Eventually(t, func() bool { return len(r.held()) == 0 }, turnLimit, 10*time.Millisecond, "the command outlived the turn")
	assert.True(t, r.toolResult(all).IsError)
	result := only[*sdk.ResultMessage](all)[0]
	assert.Equal(t, "error_during_execution", result.Subtype)
	assert.Equal(t, "aborted_tools", result.TerminalReason)

	_, after := r.ask(c, "and now [[scn:text]]")
	assert.False(t, after.Failed(), "the session goes on")
	r.close(c)
}

func checkInterruptWhilePermissionIsPending(t *testing.T, rel release) {
	r := rel.rig(t)
	asked, ended := make(chan struct{}, 1), make(chan error, 1)
	o := r.options()
	o.CanUseTool = func(ctx context.Context, _ *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		asked <- struct{}{}
		<-ctx.Done()
		ended <- ctx.Err()
		return sdk.Allow(), nil // too late
	}
	c := r.connect(o)
	turn := r.send(c, r.touch("late"))
	await(r, "the question", asked)
	_, err := c.Interrupt(r.ctx)
	require.NoError(t, err)
	require.ErrorIs(t, await(r, "the end of the callback's context", ended), context.Canceled)
	result, err := turn.Result(r.ctx)
	require.NoError(t, err)
	assert.Equal(t, "aborted_tools", result.TerminalReason)
	_, after := r.ask(c, "and now [[scn:text]]")
	assert.False(t, after.Failed(), "the session goes on")
	r.close(c)
	assert.NoFileExists(t, r.at("late"))
	assert.Empty(t, r.failed(), "the callback did not fail: it was not wanted any more")
}

func TestInterruptWhileIdle(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.connect(r.options())
	receipt, err := c.Interrupt(r.ctx)
	require.NoError(t, err)
	assert.Empty(t, receipt.StillQueued)
	_, after := r.ask(c, "and now [[scn:text]]")
	assert.False(t, after.Failed())
	r.close(c)
}

// hanging has one message at work, which never ends, and one in the queue.
func (r *rig) hanging(c *sdk.Client) (first, second *sdk.Turn) {
	r.t.Helper()
	first = r.send(c, "wait [[scn:hang]]")
	_, err := r.model.Wait(r.ctx, func(q modelapi.Request) bool { return q.Marker.Scenario == "hang" })
	require.NoError(r.t, err)
	second = r.send(c, "next [[scn:echo second]]")
	for m, err := range c.Messages(r.ctx) {
		require.NoError(r.t, err)
		if l, ok := m.(*protocol.CommandLifecycleMessage); ok && l.CommandUUID == second.UUID() {
			break
		}
	}
	return first, second
}

func TestInterruptLeavesTheQueue(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.connect(r.options())
	first, second := r.hanging(c)
	receipt, err := c.Interrupt(r.ctx)
	require.NoError(t, err)
	assert.Equal(t, []string{second.UUID()}, receipt.StillQueued)
	result, err := first.Result(r.ctx)
	require.NoError(t, err)
	assert.Equal(t, "aborted_streaming", result.TerminalReason)
	result, err = second.Result(r.ctx)
	require.NoError(t, err)
	assert.Equal(t, "second", result.Result)
	r.close(c)
}

func TestInterruptAllEmptiesTheQueue(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.connect(r.options())
	first, second := r.hanging(c)
	receipt, err := c.InterruptAll(r.ctx)
	require.NoError(t, err)
	assert.Equal(t, []string{second.UUID()}, receipt.Cancelled)
	_, err = first.Result(r.ctx)
	require.NoError(t, err)
	_, err = second.Result(r.ctx)
	require.ErrorIs(t, err, session.ErrNotRun)
	_, after := r.ask(c, "and now [[scn:text]]")
	assert.False(t, after.Failed())
	r.close(c)
}

// What is called after a message was sent comes after it on the wire: the
// message is cancelled, and does not slip behind the interrupt.
func TestInterruptAllCancelsWhatWasJustSent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.connect(r.options())
	first := r.send(c, "wait [[scn:hang]]")
	_, err := r.model.Wait(r.ctx, func(q modelapi.Request) bool { return q.Marker.Scenario == "hang" })
	require.NoError(t, err)
	second := r.send(c, "next [[scn:echo second]]")
	receipt, err := c.InterruptAll(r.ctx)
	require.NoError(t, err)
	assert.Equal(t, []string{second.UUID()}, receipt.Cancelled)
	_, err = first.Result(r.ctx)
	require.NoError(t, err)
	_, err = second.Result(r.ctx)
	require.ErrorIs(t, err, session.ErrNotRun)
	r.close(c)
}
