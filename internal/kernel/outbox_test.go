package kernel_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/kernel"
)

// TestOutbox: an effect is carried out once, whoever dies in between.
func TestOutbox(t *testing.T) {
	t.Parallel()
	var o kernel.Outbox[int]
	var done []int
	do := func(e int) { done = append(done, e) }
	o.Step(func(out []int) []int { return append(out, 1, 2, 3) })
	assert.False(t, o.Empty())
	require.Panics(t, func() {
		o.Flush(do, func(e any) {
			if e == 2 {
				panic("killed after it")
			}
		})
	})
	require.Panics(t, func() { o.Flush(func(int) { panic("killed inside it") }, nil) })
	o.Step(func(out []int) []int { return append(out, 4) })
	o.Flush(do, nil)
	assert.Equal(t, []int{1, 2, 3, 4}, done)
	assert.True(t, o.Empty())
	assert.False(t, o.Broken())

	require.Panics(t, func() { o.Step(func([]int) []int { panic("half-way") }) })
	assert.True(t, o.Broken())
	o.Flush(do, nil)
	assert.Len(t, done, 4, "nothing of a step that did not return")
}

// TestRoom: who asks for room hears when messages were handled, or never will be.
func TestRoom(t *testing.T) {
	t.Parallel()
	var at kernel.Address[int]
	assert.Nil(t, at.Room(2))
	at.Tell(nil, 1)
	assert.Nil(t, at.Room(2))
	at.Tell(nil, 2)
	full := at.Room(2)
	require.NotNil(t, full)
	assert.Equal(t, []int{1, 2}, at.Take())
	<-full
	assert.Nil(t, at.Room(2))
	assert.Empty(t, at.Take())
}
