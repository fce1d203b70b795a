package simtests_test

import (
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/simtests"
)

// rarelyUsed has a session whose process goes between its turns, and a user who waits for
// each answer however long it takes: what the user sends has to start the next process.
func rarelyUsed(w *simtests.World) {
	c := w.Open(&sdk.Options{CanUseTool: allowAll}, reachScript())
	for _, prompt := range []string{"pay", "shop", "work"} {
		_, _, err := simtests.Ask(w.Context(), c, prompt)
		assert.NoError(w, err)
		if c.Passivate(w.Context()) == nil && w.Rand().IntN(4) > 0 {
			w.Sleep(time.Second) // until nothing is under way
		}
	}
	assert.NoError(w, c.Close(w.Context()))
}
