//go:build conformance

package conformance_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/sdk"
)

// remembered leaves a session of one turn behind and returns its id.
func (r *rig) remembered() string {
	r.t.Helper()
	_, result := r.once(r.options(), "my number is 4711 [[scn:echo noted]]")
	require.False(r.t, result.Failed())
	return result.SessionID
}

// recalls asks once more and checks that the model sees what was said before.
func (r *rig) recalls(o *sdk.Options) *sdk.ResultMessage {
	r.t.Helper()
	_, result := r.once(o, "what was it? [[scn:text]]")
	require.False(r.t, result.Failed())
	history := texts(r.modelSaw("text"))
	assert.Contains(r.t, history, "user: my number is 4711")
	assert.Contains(r.t, history, "assistant: noted")
	return result
}

func checkResume(t *testing.T, rel release) {
	r := rel.rig(t)
	id := r.remembered()
	o := r.options()
	o.Resume = id
	assert.Equal(t, id, r.recalls(o).SessionID)
}

func TestResumeAndFork(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.remembered()
	o := r.options()
	o.Resume, o.ForkSession = id, true
	fork := r.recalls(o).SessionID
	assert.NotEqual(t, id, fork)

	o = r.options()
	o.Resume = id
	_, result := r.once(o, "and the first? [[scn:echo back]]")
	assert.Equal(t, id, result.SessionID)
	history := texts(r.modelSaw("echo"))
	assert.Contains(t, history, "my number is 4711")
	assert.NotContains(t, history, "what was it?", "what was said in the fork stays there")
	o.Resume = fork
	_, result = r.once(o, "and the fork? [[scn:echo again]]")
	assert.Equal(t, fork, result.SessionID)
	assert.Contains(t, texts(r.modelSaw("echo")), "what was it?")
}

func TestContinue(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.remembered()
	o := r.options()
	o.Continue = true
	assert.Equal(t, id, r.recalls(o).SessionID)
}

func TestChosenSessionID(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const id = "3f2b8c1e-7a54-4d0b-9a6e-1c2d3e4f5a6b"
	o := r.options()
	o.SessionID = id
	_, result := r.once(o, "hi [[scn:text]]")
	assert.Equal(t, id, result.SessionID)
	o = r.options()
	o.Resume = id
	_, result = r.once(o, "hi again [[scn:echo back]]")
	assert.Equal(t, id, result.SessionID)
}

func TestResumeOfAnUnknownSession(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const id = "00000000-1111-4222-8333-444444444444"
	o := r.options()
	o.Resume = id
	c := sdk.NewClient(o)
	err := c.Connect(r.ctx)
	var exit *sdk.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 1, exit.Status.Code)
	assert.Equal(t, "initialize", exit.During)
	assert.Contains(t, exit.StderrTail, "No conversation found")
	assert.Contains(t, exit.StderrTail, id)
	assert.False(t, sdk.Retryable(err))
	r.nothingRuns()
	assert.Empty(t, r.rt.Sessions())
	require.NoError(t, c.Close(r.ctx))
}
