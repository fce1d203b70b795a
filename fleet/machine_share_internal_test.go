package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet/queue"
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

// TestACancelOfAllKnowsWhatCameAfterIt: a program that is started again knows from its journal that a task was
// requeued, and then reads the decision to cancel all, which was made before that.
func TestACancelOfAllKnowsWhatCameAfterIt(t *testing.T) {
	t.Parallel()
	canceled := func(arg string) (ids []string) {
		r := testRules(1)
		r.worker, r.concurrency = "one", 1
		m := newMachine(r)
		m.step(time.Unix(0, 0), added{specs: []spec{{id: "never"}, {id: "once"}, {id: "twice"}}, last: true, past: map[string]*node{
			"once": {requeued: 1}, "twice": {requeued: 2},
		}}, nil)
		for _, e := range m.step(time.Unix(1, 0), ordered{queue.Decision{ID: jobID(1), Op: opCancelJob, Arg: arg}, nil}, nil) {
			if c, ok := e.(canceling); ok {
				ids = append(ids, c.id)
			}
		}
		return ids
	}
	assert.Equal(t, []string{"never"}, canceled(""))
	assert.Equal(t, []string{"never", "once"}, canceled(`{"once":1,"twice":1}`))
	assert.Equal(t, []string{"never", "once", "twice"}, canceled(`{"once":1,"twice":2}`))
	assert.Empty(t, canceled(`{"once":`), "what cannot be read cancels nothing")
}
