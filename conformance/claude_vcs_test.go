//go:build conformance

package conformance_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/protocol"
)

// TestVCSStateChanged has the agent commit in a repository and reads what it says of that.
func TestVCSStateChanged(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.AllowedTools = []string{"Bash"}
	r.model.Script("commit", modelapi.Say(shell("git init -q -b trunk . && git -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m first")),
		modelapi.Say(shell("git -c user.name=a -c user.email=a@example.com commit --allow-empty -m second")), modelapi.Say(modelapi.Text("Committed.")))
	all, result := r.once(o, "commit [[scn:commit]]")
	require.False(t, result.Failed())
	changed := only[*protocol.VCSStateChangedMessage](all)
	require.Len(t, changed, 1, "a commit with -q is not noticed")
	assert.Equal(t, "commit", changed[0].Kind)
	assert.Equal(t, o.Cwd, changed[0].Cwd)
	assert.Equal(t, "trunk", changed[0].Branch)
}
