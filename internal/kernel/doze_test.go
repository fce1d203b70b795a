package kernel_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
)

// dozer has a child that it lets end, and that its next message brings back.
type dozer struct {
	parent
	self  *kernel.Address[msg]
	naps  int
	rings int
}

// rung says that the child's address wants an incarnation.
type rung struct{}

func (rung) isMsg() {}

func (s *dozer) Handle(c *kernel.Context[msg], m msg) error {
	switch m.(type) {
	case rung:
		return s.next(c)
	default:
		c.StopChild(&s.at)
	}
	return nil
}

func (s *dozer) ChildDown(c *kernel.Context[msg], _ kernel.Down) error {
	dozes := s.at.Doze(func(w *kernel.Worker) {
		s.rings++
		s.self.Tell(w, rung{})
	})
	if !dozes {
		return s.next(c)
	}
	s.naps++
	return nil
}

// TestDoze: whenever a message comes, it is handled once, in its order, and rings at most
// once for each nap.
func TestDoze(t *testing.T) {
	t.Parallel()
	naps, rings := 0, 0
	for seed := range uint64(500) {
		s := sim.New(seed)
		var self kernel.Address[msg]
		p := &dozer{self: &self}
		require.NoError(t, kernel.SpawnRoot(kernel.NewSystem(s.Config()), "parent", &self, p))
		var want []int
		s.Go(func() {
			for n := range 6 {
				if n%2 == 0 {
					self.Tell(nil, chore{})
				}
				p.at.Tell(nil, chore{n: n})
				want = append(want, n)
				s.Yield(nil, false)
			}
		})
		require.NoError(t, s.Run(100_000))
		assert.Equal(t, want, p.done, "seed %d", seed)
		assert.LessOrEqual(t, p.rings, p.naps)
		assert.LessOrEqual(t, p.naps-p.rings, 1, "only the last nap lasts")
		naps, rings = naps+p.naps, rings+p.rings
		s.Close()
	}
	assert.Positive(t, rings)
	assert.Greater(t, naps, rings, "some sleep at the end")
}

// TestDozeIsRefused while an incarnation lives, and once the address is closed. A bell
// that nobody has rung is gone with the next incarnation.
func TestDozeIsRefused(t *testing.T) {
	t.Parallel()
	s := sim.New(1)
	defer s.Close()
	var at, self kernel.Address[msg]
	never := func(*kernel.Worker) { t.Error("rung") }
	p := &parent{}
	require.NoError(t, kernel.SpawnRoot(kernel.NewSystem(s.Config()), "parent", &self, p))
	require.NoError(t, s.Run(1000))
	assert.False(t, p.at.Doze(never))
	assert.True(t, at.Doze(never))
	assert.True(t, at.Doze(never), "again")
	require.NoError(t, kernel.SpawnRoot(kernel.NewSystem(s.Config()), "root", &at, &parent{}))
	at.Tell(nil, chore{})
	require.NoError(t, s.Run(1000))
	at.Close()
	assert.False(t, at.Doze(never))
}
