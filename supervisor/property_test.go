package supervisor_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agent-troupe/troupe/supervisor"
)

type op struct {
	kind  string
	child int
	after time.Duration
}

func drawSpec(t *rapid.T) (supervisor.Spec, []manner) {
	spec := supervisor.Spec{
		Name:     "sup",
		Strategy: rapid.SampledFrom([]supervisor.Standard{supervisor.OneForOne, supervisor.OneForAll, supervisor.RestForOne}).Draw(t, "strategy"),
		Intensity: supervisor.Intensity{
			Max:    rapid.SampledFrom([]int{-1, 1, 2, 3, 10, 1000}).Draw(t, "max"),
			Window: 10 * time.Second,
		},
		Backoff: supervisor.Backoff{
			Initial:    rapid.SampledFrom([]time.Duration{supervisor.NoBackoff, time.Millisecond, time.Second, 5 * time.Second}).Draw(t, "initial"),
			Max:        8 * time.Second,
			Immediate:  rapid.Bool().Draw(t, "immediate"),
			ResetAfter: 5 * time.Second,
		},
	}
	var manners []manner
	for i := range rapid.IntRange(1, 5).Draw(t, "children") {
		c := supervisor.Child{
			Name:     string(rune('a' + i)),
			Class:    rapid.SampledFrom([]supervisor.Class{supervisor.Permanent, supervisor.Permanent, supervisor.Transient, supervisor.Temporary}).Draw(t, "class"),
			Shutdown: rapid.SampledFrom([]time.Duration{0, time.Second, supervisor.Brutal}).Draw(t, "shutdown"),
		}
		c.Significant = c.Class != supervisor.Permanent && rapid.IntRange(0, 4).Draw(t, "significant") == 0
		spec.Children = append(spec.Children, c)
		manners = append(manners, rapid.SampledFrom([]manner{obedient, obedient, obedient, deaf, immortal}).Draw(t, "manner"))
	}
	return spec, manners
}

func drawOps(t *rapid.T, children int) []op {
	kinds := []string{
		"fail", "fail", "fail", "end", "comply", "comply", "comply", "comply", "pass", "pass", "pass",
		"up", "stale", "refire", "restart", "stop",
	}
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) op {
		return op{
			kind:  rapid.SampledFrom(kinds).Draw(t, "op"),
			child: rapid.IntRange(0, children-1).Draw(t, "child"),
			after: time.Duration(rapid.Int64Range(0, int64(4*time.Second)).Draw(t, "after")),
		}
	}), 0, 60).Draw(t, "ops")
}

func play(w *world, ops []op) {
	w.begin()
	for _, o := range ops {
		switch o.kind {
		case "fail":
			w.end(o.child, errBoom)
		case "end":
			w.end(o.child, nil)
		case "comply":
			w.comply()
		case "pass":
			w.pass(o.after)
		case "up":
			w.up(o.child)
		case "stale":
			w.stale(o.child)
		case "refire":
			w.refire(o.child)
		case "restart":
			w.restart(o.child)
		case "stop":
			// Rarely, so that most runs live on.
			if o.after < 500*time.Millisecond {
				w.halt()
			}
		}
	}
}

// TestAnyScheduleKeepsThePromises: whatever happens in whatever order, the
// world finds no fault with the actions, a stop comes to its end, and the same
// seed gives the same history.
func TestAnyScheduleKeepsThePromises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		spec, manners := drawSpec(t)
		ops := drawOps(t, len(spec.Children))
		seed := rapid.Uint64().Draw(t, "seed")

		var traces [2][]string
		for i := range traces {
			w := newWorld(t, spec, manners, seed)
			play(w, ops)
			w.halt()
			// One child at a time: it complies, or its two deadlines pass.
			for range 2 * len(w.kids) {
				w.comply()
				w.pass(supervisor.DefaultShutdown + supervisor.DefaultKill)
			}
			w.comply()
			require.True(t, w.over, "it did not come to Stopped")
			traces[i] = w.trace
		}
		require.Equal(t, traces[0], traces[1])
	})
}

// TestRestartsEndWithoutAStop: when children comply and cease to fail, all that
// can run does, some time later.
func TestRestartsEndWithoutAStop(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		spec, manners := drawSpec(t)
		for i := range manners {
			manners[i] = obedient
		}
		w := newWorld(t, spec, manners, rapid.Uint64().Draw(t, "seed"))
		play(w, drawOps(t, len(spec.Children)))
		for range len(w.kids) + 1 {
			for w.comply() {
			}
			w.pass(spec.Backoff.Max)
		}
		if w.ending {
			require.True(t, w.over)
			return
		}
		for i, c := range w.s.Snapshot() {
			require.Contains(t, []supervisor.State{supervisor.StateStarting, supervisor.StateRunning, supervisor.StateStopped}, c.State, c.Name)
			if spec.Children[i].Class == supervisor.Permanent {
				require.True(t, w.kids[i].alive, "%s is down", c.Name)
			}
		}
	})
}

func TestDifferentSeedsGiveDifferentDelays(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for seed := range uint64(20) {
		w := newWorld(t, supervisor.Spec{
			Name: "sup", Intensity: supervisor.Intensity{Max: 1, Window: time.Hour},
			Backoff:  supervisor.Backoff{Initial: time.Hour, Max: time.Hour},
			Children: []supervisor.Child{{Name: "a"}},
		}, []manner{obedient}, seed)
		w.begin()
		w.end(0, errBoom)
		seen[fmt.Sprint(w.s.Snapshot()[0].RestartAt)] = true
	}
	require.Len(t, seen, 20)
}
