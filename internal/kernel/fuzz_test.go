package kernel_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
)

// keeper is a supervisor in small: it respawns each child that fails, after a
// delay, under the next incarnation.
type keeper struct {
	children int
	gen      int
	spawned  *[]*leaf
	refs     *[]*kernel.Address[msg]
	rng      *rand.Rand
}

type respawn struct{}

func (respawn) isMsg() {}

func (k *keeper) Start(c *kernel.Context[msg]) error {
	for range k.children {
		if err := k.spawn(c); err != nil {
			return err
		}
	}
	return nil
}

func (k *keeper) spawn(c *kernel.Context[msg]) error {
	k.gen++
	l := &leaf{stopPanic: k.rng.IntN(20) == 0}
	at := &kernel.Address[msg]{}
	if err := kernel.Spawn(c, fmt.Sprintf("leaf#%d", k.gen), at, l); err != nil {
		return err
	}
	*k.spawned = append(*k.spawned, l)
	*k.refs = append(*k.refs, at)
	return nil
}

func (k *keeper) Handle(c *kernel.Context[msg], m msg) error {
	switch m.(type) {
	case respawn:
		return k.spawn(c)
	case boom:
		panic("keeper")
	}
	return nil
}

func (k *keeper) ChildDown(c *kernel.Context[msg], _ kernel.Down) error {
	c.After(time.Duration(k.rng.IntN(50))*time.Millisecond, respawn{})
	return nil
}

func (k *keeper) Stop(*kernel.Context[msg]) {}

type leaf struct {
	started, stopped, afterStop int
	stopPanic                   bool
}

func (l *leaf) Start(*kernel.Context[msg]) error {
	l.started++
	if l.stopped > 0 {
		l.afterStop++
	}
	return nil
}

func (l *leaf) Handle(*kernel.Context[msg], msg) error {
	if l.stopped > 0 {
		l.afterStop++
	}
	panic("leaf")
}

func (l *leaf) Stop(*kernel.Context[msg]) {
	l.stopped++
	if l.stopPanic {
		panic("leaf in stop")
	}
}

// seeds is how many a simulation plays: want, a quarter with -short, or as many as
// TROUPE_SEEDS says.
func seeds(t *testing.T, want int) uint64 {
	t.Helper()
	if v := os.Getenv("TROUPE_SEEDS"); v != "" {
		n, err := strconv.Atoi(v)
		require.NoError(t, err, "TROUPE_SEEDS")
		return uint64(n)
	}
	if testing.Short() {
		want = max(want/4, 5)
	}
	return uint64(want)
}

// TestStopWhileCrashing crashes actors at random while the tree is stopped.
// The tree must always end, and no actor may start, or handle anything, after
// it stopped.
func TestStopWhileCrashing(t *testing.T) {
	t.Parallel()
	for seed := range seeds(t, 300) {
		s := sim.New(seed)
		rng := rand.New(rand.NewPCG(seed, 7))
		sys := kernel.NewSystem(s.Config())
		var leaves []*leaf
		var refs []*kernel.Address[msg]
		root := root(t, sys, &keeper{children: 3, spawned: &leaves, refs: &refs, rng: rng})
		for range 20 {
			s.Step()
		}
		for range 15 {
			refs[rng.IntN(len(refs))].Tell(nil, boom{})
			if rng.IntN(40) == 0 {
				root.Tell(nil, boom{})
			}
			for range rng.IntN(4) {
				s.Step()
			}
		}
		require.NoError(t, kernel.StopAndWait(t.Context(), root), "seed %d", seed)
		require.NoError(t, s.Run(10_000), "seed %d", seed)
		for i, l := range leaves {
			require.Equal(t, l.started, l.stopped, "seed %d: leaf %d", seed, i)
			require.LessOrEqual(t, l.started, 1, "seed %d: leaf %d", seed, i)
			require.Zero(t, l.afterStop, "seed %d: leaf %d came back", seed, i)
		}
		s.Close()
	}
}
