package kernel

import (
	"strconv"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// TestBrood: however many children come and go, those that are there are found, and are
// listed in the order in which they came.
func TestBrood(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var b brood
		var there []*life
		most := rapid.SampledFrom([]int{3, fewChildren, fewChildren + 1, 30}).Draw(t, "most")
		for i := range int32(80) {
			if len(there) > 0 && (len(there) == most || rapid.Bool().Draw(t, "ends")) {
				n := rapid.IntRange(0, len(there)-1).Draw(t, "which")
				b.remove(there[n].pid.Id)
				assert.Nil(t, b.get(there[n].pid.Id))
				there = append(there[:n:n], there[n+1:]...)
			} else {
				l := &life{pid: &actor.PID{Id: strconv.Itoa(int(i))}, number: i}
				b.add(l)
				there = append(there, l)
			}
			assert.Equal(t, len(there) == 0, b.empty())
			if len(there) == 0 {
				assert.Equal(t, brood{}, b, "nothing is kept")
				continue
			}
			assert.Equal(t, there, b.all())
			for _, l := range there {
				assert.Same(t, l, b.get(l.pid.Id))
			}
		}
		b.remove("nobody")
	})
}
