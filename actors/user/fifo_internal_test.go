package user

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestAFifoIsAQueue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var f fifo[*int]
		var model []*int
		for range rapid.IntRange(1, 20).Draw(t, "bursts") {
			for range rapid.IntRange(0, 3).Draw(t, "blocks") {
				n := rapid.IntRange(0, 100).Draw(t, "block")
				block := make([]*int, 0, n+rapid.IntRange(0, 2).Draw(t, "room"))
				for range n {
					block = append(block, new(int))
				}
				model = append(model, block...)
				f.pushAll(block)
			}
			for range rapid.IntRange(0, 300).Draw(t, "in") {
				v := new(int)
				f.push(v)
				model = append(model, v)
			}
			for range rapid.IntRange(0, 300).Draw(t, "out") {
				if len(model) == 0 {
					break
				}
				assert.Same(t, model[0], *f.front())
				assert.Same(t, model[0], f.pop())
				model = model[1:]
			}
			if rapid.Bool().Draw(t, "compact") {
				seen := 0
				f.compact(func(v **int) {
					assert.Same(t, model[seen], *v)
					seen++
				})
				if len(model) <= lastBlock {
					assert.Equal(t, len(model), seen)
					for _, block := range f.blocks {
						assert.Equal(t, len(model), cap(block))
					}
				}
			}
			assert.Equal(t, len(model), f.len())
			held := 0
			for _, block := range f.blocks {
				for _, v := range block[:cap(block)] {
					if v != nil {
						held++
					}
				}
			}
			assert.Equal(t, len(model), held, "what was given out is not kept")
			if len(model) == 0 {
				assert.LessOrEqual(t, len(f.blocks), 1)
			}
		}
	})
}
