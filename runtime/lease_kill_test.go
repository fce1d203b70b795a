package runtime_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// rights are leases in memory.
type rights struct {
	holders map[string]int
	ever    int
	broken  error // Acquire fails with it
	panics  bool
}

func newRights() *rights { return &rights{holders: make(map[string]int)} }

func (r *rights) Acquire(_ context.Context, id string) (func(), error) {
	switch {
	case r.panics:
		panic("no rights")
	case r.broken != nil:
		return nil, &session.LeaseError{SessionID: id, Err: r.broken}
	case r.holders[id] > 0:
		return nil, &session.LeaseError{SessionID: id}
	}
	r.holders[id]++
	r.ever++
	return func() { r.holders[id]-- }, nil
}

func (r *rights) held() (n int) {
	for _, holders := range r.holders {
		n += holders
	}
	return n
}

const leased = "3f2b8c1e-7a54-4d0b-9a6e-1c2d3e4f5a6b"

// TestASessionHasALease: while its agent runs, and not without an agent. The second
// session gets an error, and starts nothing.
func TestASessionHasALease(t *testing.T) {
	t.Parallel()
	for seed := range sim.Seeds(t, 10, 20) {
		held := newRights()
		w := newWorldWith(t, seed, runtime.Config{Leases: held})
		r := newRests(w)
		r.spec.Options.SessionID = leased
		s, err := w.Open(t.Context(), r.spec)
		require.NoError(w, err)
		done := reading(w, s)
		require.Equal(w, 1, held.held())

		second := newRests(w)
		second.spec.ID, second.spec.Options.SessionID = "second", leased
		_, err = w.Open(t.Context(), second.spec)
		var taken *session.LeaseError
		require.ErrorAs(w, err, &taken)
		require.Empty(w, second.args, "no process was started")
		for _, b := range w.Tree(t.Context()).Breakers {
			require.Zero(w, b.Failures, "that says nothing of the program")
		}

		require.NoError(w, say(s, "go"))
		require.NoError(w, s.Passivate(t.Context()))
		require.Zero(w, held.held(), "a session without a process needs none")
		require.NoError(w, say(s, "on"))
		require.Equal(w, leased, s.AgentSessionID())
		require.Equal(w, 1, held.held())
		require.NoError(w, s.Close(t.Context()))
		done()
		require.Zero(w, held.held())
		w.Finish()
	}
}

// TestALeaseOfASessionThatTheAgentChooses is got when the agent names it; one that is
// taken ends the session.
func TestALeaseOfASessionThatTheAgentChooses(t *testing.T) {
	t.Parallel()
	for name, taken := range map[string]bool{"free": false, "taken": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			held := newRights()
			w := newWorldWith(t, 1, runtime.Config{Leases: held})
			r := newRests(w)
			r.spec.Program = w.Agent(&scripted.Script{SessionID: leased, Default: scripted.Steps{scripted.Text("more")}})
			if taken {
				held.holders[leased] = 1
			}
			s, err := w.Open(t.Context(), r.spec)
			require.NoError(w, err)
			require.Zero(w, held.ever)
			done := reading(w, s)
			err = say(s, "go")
			if !taken {
				require.NoError(w, err)
				require.Equal(w, 1, held.held())
				require.NoError(w, s.Close(t.Context()))
			} else {
				w.Await(s.Done()) // perhaps after the turn, which was short
				var lease *session.LeaseError
				require.ErrorAs(w, s.Err(), &lease)
				held.holders[leased] = 0
			}
			done()
			w.Quiet()
			require.Zero(w, held.held())
		})
	}
}

// TestLeasesThatFail: no agent runs without one.
func TestLeasesThatFail(t *testing.T) {
	t.Parallel()
	for name, held := range map[string]*rights{
		"an error": {broken: errors.New("the store is away")}, "a panic": {panics: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorldWith(t, 1, runtime.Config{Leases: held})
			r := newRests(w)
			r.spec.Options.Resume = leased
			_, err := w.Open(t.Context(), r.spec)
			var lease *session.LeaseError
			require.ErrorAs(w, err, &lease)
			require.Error(w, lease.Err)
			assert.Empty(w, r.args)
		})
	}
}

// TestALeaseIsGivenBackByTheDead kills each actor at each message of a run whose agent
// dies and is resumed: no two processes hold the lease at a time, and none keeps it.
func TestALeaseIsGivenBackByTheDead(t *testing.T) {
	t.Parallel()
	play := func(w *world, held *rights) {
		r := newRests(w)
		r.spec.Options.SessionID, r.spec.Options.MaxRestarts = leased, 1
		s, err := w.Open(context.Background(), r.spec)
		if err == nil {
			done := reading(w, s)
			_ = say(s, "go")
			_ = s.Passivate(context.Background())
			_ = say(s, "on")
			_ = s.Close(context.Background())
			done()
		}
		w.Finish()
		require.Zero(w, held.held())
		require.Positive(w, held.ever)
	}
	for seed := range sim.Seeds(t, 1, 200) {
		held := newRights()
		calm := newWorldWith(t, seed, runtime.Config{Leases: held})
		play(calm, held)
		require.Equal(calm, 2, held.ever)
		for n := range calm.Handled() {
			if sim.Skips(seed, n) {
				continue
			}
			struck, held := false, newRights()
			play(newWorldWith(t, seed, runtime.Config{Leases: held}, strike(n, kernel.BeforeMessage, &struck)), held)
		}
	}
}
