package kernel_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
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

// books is what outlives a scribe.
type books struct {
	at     kernel.Address[msg]
	outbox kernel.Outbox[int]
	done   []int
	lives  int
}

// scribe works through an outbox, as the actors of the machines do.
type scribe struct{ *books }

func (k scribe) flush(c *kernel.Context[msg]) {
	kernel.FlushOn(c, &k.outbox, func(e int) { k.done = append(k.done, e) })
}

func (k scribe) Start(c *kernel.Context[msg]) error {
	k.flush(c)
	return nil
}

func (k scribe) Handle(c *kernel.Context[msg], m msg) error {
	j, ok := m.(chore)
	if !ok || k.outbox.Broken() {
		return nil
	}
	kernel.StepOn(c, &k.outbox, m, func(out []int) []int { return append(out, 10*j.n, 10*j.n+1) })
	c.Commit()
	k.flush(c)
	return nil
}
func (scribe) Stop(*kernel.Context[msg]) {}

// office starts the scribes, one after the other.
type office struct{ *books }

func (o office) Start(c *kernel.Context[msg]) error {
	o.lives++
	return kernel.Spawn(c, fmt.Sprintf("scribe#%d", o.lives), &o.at, scribe(o))
}
func (office) Handle(*kernel.Context[msg], msg) error { return nil }
func (office) Stop(*kernel.Context[msg])              {}

func (o office) ChildDown(c *kernel.Context[msg], _ kernel.Down) error { return o.Start(c) }

// TestAScribeIsKilledAtEveryMoment: whichever moment it is, each effect is carried out once and
// in order. Nothing of a step in which it died is, and nothing after it.
func TestAScribeIsKilledAtEveryMoment(t *testing.T) {
	t.Parallel()
	const chores = 4
	moments := map[kernel.Moment]int{}
	for seed := range uint64(5) {
		for n := 0; ; n++ {
			strikes, killed, at := 0, 0, kernel.Moment(-1)
			s := sim.New(seed)
			cfg := s.Config()
			cfg.Chaos = func(actor string, m any, when kernel.Moment) bool {
				if actor == "root" {
					return false
				}
				strikes++
				if strikes != n+1 {
					return false
				}
				at = when
				if j, ok := m.(chore); ok {
					killed = j.n
				}
				return true
			}
			sys := kernel.NewSystem(cfg)
			b := &books{}
			root(t, sys, office{b})
			require.NoError(t, s.Run(1000))
			for i := range chores {
				b.at.Tell(nil, chore{n: i})
			}
			require.NoError(t, s.Run(1000))
			s.Close()
			var want []int
			for i := range chores {
				if at == kernel.InStep && i >= killed {
					break
				}
				want = append(want, 10*i, 10*i+1)
			}
			require.Equal(t, want, b.done, "seed %d, strike %d (%v)", seed, n, at)
			require.Equal(t, at == kernel.InStep, b.outbox.Broken())
			if at < 0 { // there was no such strike
				require.Equal(t, 1, b.lives)
				break
			}
			require.Equal(t, 2, b.lives)
			moments[at]++
		}
	}
	assert.Len(t, moments, 4, moments)
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
