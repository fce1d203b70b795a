//go:build conformance

package conformance_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// TestASessionOutlivesItsAgent kills the agent in a turn, whose death is only to be
// reported: the turn ends with the reason, and the next process knows what was said before.
func TestASessionOutlivesItsAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.MaxRestarts, o.Recovery = 1, session.RecoverReport
	o.AllowedTools = []string{"Bash"}
	c := r.connect(o)
	_, result := r.ask(c, "my number is 4711 [[scn:echo noted]]")
	require.False(t, result.Failed())
	id := result.SessionID

	prompt, running := r.hold()
	turn := r.send(c, prompt)
	running()
	for _, p := range processesNaming(r.dir) {
		require.NoError(t, syscall.Kill(p.pid, syscall.SIGKILL))
	}
	_, err := turn.Result(r.ctx)
	var exit *sdk.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, "a turn", exit.During)

	_, result = r.ask(c, "and now? [[scn:text]]")
	assert.Equal(t, id, result.SessionID)
	history := texts(r.modelSaw("text"))
	assert.Contains(t, history, "user: my number is 4711")
	assert.Contains(t, history, "assistant: noted")
	r.close(c)
}
