package simtests_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/simtests"
)

// letters is a scenario of tasks that each say their letter twice.
func letters(orders map[string]int, names ...string) func(*simtests.World) {
	return func(w *simtests.World) {
		var said strings.Builder
		for _, name := range names {
			w.Go(func() {
				for range 2 {
					said.WriteString(name)
					w.Sleep(time.Second)
				}
			})
		}
		w.Run()
		orders[said.String()]++
	}
}

// Exhaustive ends when it has played every order: either task may start first, and
// either may go on first.
func TestExhaustiveEndsWithAllOrders(t *testing.T) {
	t.Parallel()
	orders := make(map[string]int)
	r := simtests.Explore(t, simtests.Config{Strategy: simtests.Exhaustive, Seeds: 20_000, Twice: -1}, letters(orders, "a", "b"))
	assert.Len(t, orders, 4)
	assert.Less(t, r.Histories, 20_000, "it ended by itself")
}

// PCT reaches what a random walk reaches, with few changes of priority.
func TestPCTOrders(t *testing.T) {
	t.Parallel()
	orders := make(map[string]int)
	simtests.Explore(t, simtests.Config{Strategy: simtests.PCT, Seeds: 200, Twice: 1}, letters(orders, "a", "b", "c"))
	assert.Greater(t, len(orders), 10)
	simtests.Explore(t, simtests.Config{Strategy: simtests.PCT, Seeds: 20, Twice: 1}, func(w *simtests.World) {
		c := w.Open(&sdk.Options{CanUseTool: allowAll}, refund())
		require.NoError(w, ask(w, c, "refund order 7"))
		require.NoError(w, c.Close(w.Context()))
	})
}
