package kernel_test

import (
	"runtime"
	"slices"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/kernel"
)

// TestStoppedActorsAreGarbage: the actor library keeps the PIDs of removed
// children, and a Ref reaches the adapter of its actor.
func TestStoppedActorsAreGarbage(t *testing.T) {
	t.Parallel()
	const many = 50
	sys := kernel.NewSystem(kernel.Config{})
	parent, err := kernel.SpawnRoot[msg](sys, "parent", &node{})
	require.NoError(t, err)
	var (
		refs      []kernel.Ref[msg]
		behaviors []weak.Pointer[node]
		actors    []func() bool
	)
	for i := range 2 * many {
		b := &node{}
		ref := askSpawn(t, parent, string(rune('a'+i)), b)
		behaviors = append(behaviors, weak.Make(b))
		refs = append(refs, ref)
		actors = append(actors, ref.Collected())
	}
	for _, ref := range refs {
		require.NoError(t, kernel.StopAndWait(t.Context(), ref))
	}
	started, err := askPing(t.Context(), parent)
	require.NoError(t, err)
	assert.Equal(t, 1, started, "the parent lives")

	refs = slices.Clone(refs[:many])
	assert.Eventually(t, func() bool {
		runtime.GC()
		return !slices.ContainsFunc(behaviors, func(b weak.Pointer[node]) bool { return b.Value() != nil }) &&
			!slices.ContainsFunc(actors[many:], func(collected func() bool) bool { return !collected() })
	}, 10*time.Second, time.Millisecond, "of an actor with a Ref the behaviour goes, of one without everything")
	runtime.KeepAlive(refs)
	require.NoError(t, kernel.StopAndWait(t.Context(), parent))
}
