package supervisor_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/supervisor"
)

// TestEveryInterleaving plays every order of three failures of three children, with each
// moment at which a child that was asked to end does so, at which time passes, and at which
// the supervisor is stopped, under each strategy. The world checks each step.
func TestEveryInterleaving(t *testing.T) {
	t.Parallel()
	longest, least := 5, 1000
	switch {
	case os.Getenv("TROUPE_SEEDS") != "": // a long run
		longest = 6
	case testing.Short(), sim.Raced(): // nothing in it runs concurrently
		longest, least = 4, 100
	}
	for _, strategy := range []supervisor.Standard{supervisor.OneForOne, supervisor.OneForAll, supervisor.RestForOne} {
		t.Run(strategy.String(), func(t *testing.T) {
			t.Parallel()
			spec := supervisor.Spec{
				Name: "sup", Strategy: strategy,
				Intensity: supervisor.Intensity{Max: 2, Window: time.Hour},
				Backoff:   supervisor.Backoff{Initial: time.Second, Max: time.Second},
				Children: []supervisor.Child{
					{Name: "a"},
					{Name: "b", Class: supervisor.Transient, Significant: true},
					{Name: "c", Shutdown: supervisor.Brutal},
				},
			}
			played := 0
			interleavings(longest, nil, 3, 0, func(steps []step) {
				playSteps(t, spec, steps)
				played++
			})
			require.Greater(t, played, least)
			t.Logf("%d orders", played)
		})
	}
}

// step is an input: a child that fails, one that ends normally, or something else.
type step int

const (
	failA step = iota
	failB
	failC
	endB
	comply // the children that were asked to end do so
	wait   // for every backoff
	halt
)

// interleavings calls play with every sequence of at most longest steps that has so many
// failures, and does not wait or comply twice in a row, which changes nothing.
func interleavings(longest int, steps []step, failures, ends int, play func([]step)) {
	if failures == 0 {
		play(steps)
	}
	if len(steps) == longest {
		return
	}
	for next := failA; next <= halt; next++ {
		left, ended := failures, ends
		switch {
		case next <= failC:
			left--
		case next == endB:
			ended++
		case len(steps) > 0 && steps[len(steps)-1] == next:
			continue
		}
		if left < 0 || ended > 1 || len(steps)+1+left > longest {
			continue
		}
		interleavings(longest, append(steps[:len(steps):len(steps)], next), left, ended, play)
	}
}

func playSteps(t *testing.T, spec supervisor.Spec, steps []step) {
	w := newWorld(t, spec, []manner{obedient, obedient, deaf}, 1)
	defer func() {
		if t.Failed() {
			t.Logf("steps %v", steps)
		}
	}()
	w.begin()
	for _, s := range steps {
		switch s {
		case failA, failB, failC:
			w.end(int(s-failA), errBoom)
		case endB:
			w.end(1, nil)
		case comply:
			w.comply()
		case wait:
			w.pass(time.Second)
		case halt:
			w.halt()
		}
	}
	w.halt()
	for range 2 * len(w.kids) {
		w.comply()
		w.pass(supervisor.DefaultShutdown + supervisor.DefaultKill)
	}
	w.comply()
	require.True(t, w.over, "it did not come to Stopped: %v", steps)
}
