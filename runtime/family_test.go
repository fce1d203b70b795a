package runtime_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// family is two children of one session. The recorder notes what it gets and sends it
// to the other one, whose functions wait, so that they may be under way when an actor
// dies, and which uses the session.
type family struct {
	spec     runtime.Spec
	events   []string // that OnEvent got
	recorded []string
	told     []int
	running  int // functions of one child that run
	stops    int
}

const orders = 6

func newFamily(w *world) *family {
	atOnce := supervisor.Backoff{Initial: supervisor.NoBackoff} // a child that is down when the session ends is not started again
	f := &family{spec: w.Gated(script())}
	enter := func(running *int) func() {
		*running++
		require.Equal(w, 1, *running, "two functions of one child at once")
		return func() { *running-- }
	}
	var ofOther int
	other, ref := session.NewChild(supervisor.Child{Name: "other", Backoff: atOnce}, func() session.Behavior[int] {
		return session.Behavior[int]{
			Handle: func(ctx context.Context, n int) error {
				defer enter(&ofOther)()
				f.told = append(f.told, n)
				w.Pass(time.Millisecond)
				if n == orders/2 {
					_ = runtime.SessionOf(ctx).Call(ctx, &protocol.MCPStatusRequest{}, nil, time.Second)
				}
				return nil
			},
			Stop: func(context.Context, error) error {
				defer enter(&ofOther)()
				f.stops++
				return nil
			},
		}
	})
	recorder, _ := session.NewChild(supervisor.Child{Name: "recorder", Backoff: atOnce}, func() session.Behavior[int] {
		return session.Behavior[int]{Event: func(_ context.Context, r session.EventRecord) error {
			defer enter(&f.running)()
			f.recorded = append(f.recorded, fmt.Sprint(r))
			if n := len(f.recorded); n <= orders {
				return ref.Send(n)
			}
			return nil
		}}
	})
	f.spec.Options.Children = []*session.Child{recorder, other}
	f.spec.Options.OnEvent = func(r session.EventRecord) { f.events = append(f.events, fmt.Sprint(r)) }
	return f
}

// check is for the end of the session. The queue of a child that was killed during the
// stop is not handled; nothing else is missing, and nothing comes twice.
func (f *family) check(w *world, where string, kills int) {
	require.LessOrEqual(w, len(f.recorded), len(f.events), where)
	require.Equal(w, f.events[:len(f.recorded)], f.recorded, where)
	if kills == 0 {
		require.Len(w, f.events, len(f.recorded)+2, where) // the state closed, and Ended
		require.Equal(w, 1, f.stops, where)
	}
	require.LessOrEqual(w, f.stops, 1, where)
	require.Len(w, f.told, orders, where)
	for i, n := range f.told {
		require.Equal(w, i+1, n, where)
	}
}

// TestKillChildrenOfTheUsersOwn kills each actor at each message and effect of a session
// with children: the session continues as without them, and each event and each message
// is handled once, in order.
func TestKillChildrenOfTheUsersOwn(t *testing.T) {
	t.Parallel()
	for seed := range sim.Seeds(t, 2, 200) {
		calm := newWorld(t, seed)
		f := newFamily(calm)
		require.NoError(t, calm.Play(context.Background(), f.spec, "go", "on"))
		calm.Finish()
		f.check(calm, fmt.Sprint("calm, seed ", seed), 0)
		for n, what := range calm.Handled() {
			if sim.Skips(seed, n) {
				continue
			}
			for _, at := range []kernel.Moment{kernel.BeforeMessage, kernel.AfterMessage, kernel.AfterEffect} {
				where := fmt.Sprintf("seed %d, killed %v message %d (%s)", seed, at, n, what)
				struck := false
				w := newWorld(t, seed, strike(n, at, &struck))
				f := newFamily(w)
				require.NoError(t, w.Play(context.Background(), f.spec, "go", "on"), where)
				w.Finish()
				require.True(t, struck || at == kernel.AfterEffect, where)
				require.Empty(t, w.TurnErrors(), where)
				w.Lossless(where)
				w.FailClosed(where)
				f.check(w, where, 1)
			}
		}
	}
}

// TestKillSeveralOfAFamily kills at several random messages, so that an actor dies while
// another one is being restarted, with each strategy.
func TestKillSeveralOfAFamily(t *testing.T) {
	t.Parallel()
	for seed := range sim.Seeds(t, 60, 5) {
		rng := rand.New(rand.NewPCG(seed, 13))
		deaths := make(map[int]bool)
		for range 2 + rng.IntN(2) {
			deaths[rng.IntN(200)] = true
		}
		last := -1
		w := newWorld(t, seed, killingWhen(func(n int, _ string, at kernel.Moment) bool {
			if at != kernel.BeforeMessage || !deaths[n] || n == last {
				return false
			}
			last = n
			return true
		}))
		f := newFamily(w)
		where := fmt.Sprintf("seed %d, killed at %v", seed, deaths)
		f.spec.Options.Supervisors.Session = supervisor.Policy{
			Strategy: supervisor.Standard(seed % 3), Intensity: supervisor.Intensity{Max: 10, Window: time.Minute},
		}
		require.NoError(t, w.Play(context.Background(), f.spec, "go", "on"), where)
		w.Finish()
		require.Empty(t, w.TurnErrors(), where)
		w.Lossless(where)
		w.FailClosed(where)
		require.Equal(t, append([]string(nil), f.events[:len(f.recorded)]...), f.recorded, where)
		for i, n := range f.told {
			require.Equal(t, i+1, n, where)
		}
	}
}
