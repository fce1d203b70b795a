package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/kernel"
)

// TestAResultBeforeItsTask: a program asks about a result of the queue at once, also while the
// tasks wait to be admitted. The result must not be dropped, because it comes once.
func TestAResultBeforeItsTask(t *testing.T) {
	t.Parallel()
	r := testRules(1)
	r.worker = "one"
	m := newMachine(r)
	ask := func(ticket string) known {
		reply := kernel.NewPromise[known]()
		out := knows{ticket, "two", 7, reply}.note(m, time.Unix(0, 0), nil)
		require.Len(t, out, 1)
		out[0].(interface{ settle() }).settle()
		got, err := reply.Value()
		require.NoError(t, err)
		return got
	}
	assert.False(t, ask("a").old)
	m.nodes["a"] = &node{spec: spec{id: "a"}}
	assert.False(t, ask("a").old)
	m.nodes["a"].state = nodeOver
	assert.True(t, ask("a").old)
}
