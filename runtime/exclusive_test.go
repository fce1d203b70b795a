package runtime_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/runtime"
)

func TestExclusive(t *testing.T) {
	t.Parallel()
	rt, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, rt.Shutdown(context.WithoutCancel(t.Context()))) })
	inside, most := map[string]int{}, 0 // each name guards its own count
	names := []string{"a", "b"}
	for _, name := range names {
		inside[name] = 0
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 50 {
		for _, name := range names {
			all.Go(func() {
				leave, err := rt.Exclusive(t.Context(), name)
				assert.NoError(t, err)
				defer leave()
				mu.Lock()
				inside[name]++
				most = max(most, inside[name])
				mu.Unlock()
				mu.Lock()
				defer mu.Unlock()
				inside[name]--
			})
		}
	}
	all.Wait()
	assert.Equal(t, 1, most)
}

// One that gave up is passed over, and lets no other caller in before its turn.
func TestExclusiveWithACancel(t *testing.T) {
	t.Parallel()
	rt, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, rt.Shutdown(context.WithoutCancel(t.Context()))) })
	first, err := rt.Exclusive(t.Context(), "a")
	require.NoError(t, err)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 {
		_, err = rt.Exclusive(gone, "a")
		require.ErrorIs(t, err, context.Canceled)
	}
	other, err := rt.Exclusive(t.Context(), "b")
	require.NoError(t, err, "another name is free")
	other()
	first()
	last, err := rt.Exclusive(t.Context(), "a")
	require.NoError(t, err)
	last()
	last()
}
