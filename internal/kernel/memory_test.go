package kernel_test

import (
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/kernel"
)

// owner is what an address is part of.
type owner struct{ at kernel.Address[msg] }

// TestGoroutinesLeaveNoGarbage: nothing keeps what the addresses of stopped
// children belong to.
func TestGoroutinesLeaveNoGarbage(t *testing.T) {
	t.Parallel()
	const many = 50
	sys := kernel.NewSystem(kernel.Config{})
	parent := root(t, sys, &node{})
	var (
		all       []*owner
		owners    []weak.Pointer[owner]
		behaviors []weak.Pointer[node]
		actors    []func() bool
	)
	for i := range 2 * many {
		b, o := &node{}, &owner{}
		askSpawn(t, parent, string(rune('a'+i)), &o.at, b)
		behaviors = append(behaviors, weak.Make(b))
		owners = append(owners, weak.Make(o))
		actors = append(actors, o.at.Collected())
		all = append(all, o)
	}
	for _, o := range all {
		require.NoError(t, kernel.StopAndWait(t.Context(), &o.at))
	}
	started, err := askPing(t.Context(), parent)
	require.NoError(t, err)
	assert.Equal(t, 1, started, "the parent lives")

	all = slices.Clone(all[:many])
	assert.Eventually(t, func() bool {
		runtime.GC()
		return !slices.ContainsFunc(behaviors, func(b weak.Pointer[node]) bool { return b.Value() != nil }) &&
			!slices.ContainsFunc(owners[many:], func(o weak.Pointer[owner]) bool { return o.Value() != nil }) &&
			!slices.ContainsFunc(actors[many:], func(collected func() bool) bool { return !collected() })
	}, time.Minute, time.Millisecond, "of an actor with an address the behaviour goes, of one without everything")
	runtime.KeepAlive(all)
	require.NoError(t, kernel.StopAndWait(t.Context(), parent))
}

// census tells how many children the actor library knows of.
type census struct{ node }

type adopted struct{ reply *kernel.Promise[int] }

func (adopted) isMsg() {}

func (k *census) Handle(c *kernel.Context[msg], m msg) error {
	if m, ok := m.(adopted); ok {
		m.reply.Resolve(c.Adopted())
		return nil
	}
	return k.node.Handle(c, m)
}

// The library's maps of actors never give memory back, so no child is in them.
func TestTheLibraryKeepsNoMapOfActors(t *testing.T) {
	t.Parallel()
	sys := kernel.NewSystem(kernel.Config{})
	empty := sys.Registered()
	parent := root(t, sys, &census{})
	for i := range 50 {
		askSpawn(t, parent, strconv.Itoa(i), &kernel.Address[msg]{}, &node{})
	}
	known, err := kernel.Ask(t.Context(), parent, func(p *kernel.Promise[int]) msg { return adopted{p} })
	require.NoError(t, err)
	assert.Zero(t, known)
	assert.Equal(t, empty+1, sys.Registered(), "the parent, which has none itself")
	require.NoError(t, kernel.StopAndWait(t.Context(), parent))
	assert.Equal(t, empty, sys.Registered())
}
