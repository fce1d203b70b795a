package transport_test

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/actors/transport"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// counted are leases that note who has one.
type counted struct {
	held map[string]bool
	most int
	lost func(error)           // of the last one
	then func(context.Context) // runs when one was got
	ever int
}

func (c *counted) Acquire(ctx context.Context, id string, lost func(error)) (func(), error) {
	c.held[id], c.lost = true, lost
	c.ever++
	c.most = max(c.most, len(c.held))
	if c.then != nil {
		c.then(ctx)
	}
	return func() { delete(c.held, id) }, nil
}

// rude are leases that cannot be given back.
type rude struct{}

func (rude) Acquire(context.Context, string, func(error)) (func(), error) {
	return func() { panic("odd") }, nil
}

// TestALeaseThatPanicsWhenItIsGivenBack holds up nothing, and is reported.
func TestALeaseThatPanicsWhenItIsGivenBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(_ *rig, s *setup) { s.link.Leases, s.link.SessionID = rude{}, "first" })
	r.up()
	r.Named("second") // the first one is given back
	r.settle()
	r.Abort()
	r.ended()
	var problems []string
	for _, e := range r.events {
		if e, ok := e.(*session.WarningIssued); ok {
			problems = append(problems, e.Problem)
		}
	}
	const problem = "the lease of an agent's session may not have been given back: panic while handling the release of a lease: odd"
	require.Equal(t, []string{problem, problem}, problems)
}

// quitting is a spawner whose code ends the goroutine, and leases that do so for one session.
type quitting struct{ of string }

func (q quitting) Acquire(_ context.Context, id string, _ func(error)) (func(), error) {
	if id == q.of {
		goruntime.Goexit()
	}
	return func() {}, nil
}

// Spawn implements [session.Spawner].
func (quitting) Spawn(context.Context, session.Command) (session.Process, error) {
	goruntime.Goexit()
	return nil, nil //nolint:nilnil // it is not reached
}

// TestALaunchThatEndsItsGoroutine has failed, as one that panics, and a lease that is not had in
// this way makes the agent useless.
func TestALaunchThatEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	sys := kernel.NewSystem(kernel.Config{})
	unusable := make(chan error, 1)
	link := func(id string) *transport.Link {
		return transport.NewLink(transport.LinkConfig{
			Clock: sys.Clock(), Exec: sys.Executor(), Spawner: quitting{}, Leases: quitting{"taken"}, SessionID: id,
			Command: &session.Command{Path: "/bin/agent"},
			Router:  func(*kernel.Worker, machine.Input) {},
			Self:    func(machine.ToTransport) {},
			Session: func(in machine.LifeInput) {
				if in, ok := in.(machine.Unusable); ok {
					unusable <- in.Err
				}
			},
		})
	}
	for id, want := range map[string]any{"free": new(*session.StartError), "taken": new(*session.LeaseError)} {
		k := link(id)
		k.Launch()
		require.NoError(t, kernel.GoExecutor{}.Await(t.Context(), k.Done()))
		require.ErrorAs(t, k.Status().Err.Err, want)
		require.ErrorIs(t, k.Status().Err.Err, transport.ErrNoReturn)
	}
	k := link("free")
	k.Named("taken")
	err := <-unusable
	require.ErrorAs(t, err, new(*session.LeaseError))
	require.ErrorIs(t, err, transport.ErrNoReturn)
}

// TestAnAgentThatNamesManySessions has the lease of the last one: an agent says what it
// likes, and takes no file of the host's for each word.
func TestAnAgentThatNamesManySessions(t *testing.T) {
	t.Parallel()
	leases := &counted{held: make(map[string]bool)}
	r := newRig(t, func(_ *rig, s *setup) { s.link.Leases, s.link.SessionID = leases, "first" })
	r.up()
	require.Equal(t, map[string]bool{"first": true}, leases.held)
	r.Named("FIRST")
	for n := range 1000 {
		r.Named(fmt.Sprint("session ", n))
		if n%10 == 0 {
			r.settle()
		}
	}
	r.settle()
	require.Equal(t, map[string]bool{"session 999": true}, leases.held)
	require.LessOrEqual(t, leases.most, 2, "the next one before the last is given back")
	r.Named("first")
	r.Named("session 999")
	r.settle()
	require.Equal(t, map[string]bool{"session 999": true}, leases.held)
	r.Abort()
	r.ended()
	require.Empty(t, leases.held)
	leases.lost(errors.New("late")) // it changes nothing
	r.Named("another")
	r.settle()
	require.Empty(t, leases.held, "no process is left that could be in it")
}

// TestALeaseThatComesAfterTheProcess is given back before the end of the link is seen: another
// process may use the session at once.
func TestALeaseThatComesAfterTheProcess(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		takes time.Duration // of an Acquire, from the end of its context on
		held  bool
	}{"soon": {time.Millisecond, false}, "never": {time.Hour, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			leases := &counted{held: make(map[string]bool)}
			r := newRig(t, func(_ *rig, s *setup) { s.link.Leases, s.link.SessionID = leases, "first" })
			r.up()
			asked := make(chan struct{})
			leases.then = func(ctx context.Context) {
				close(asked)
				_ = r.sched.Await(ctx, make(chan struct{}))
				got := make(chan struct{})
				r.sched.AfterFunc(tt.takes, func() { close(got) })
				_ = r.sched.Await(context.Background(), got)
			}
			r.Named("second")
			require.NoError(t, r.sched.Await(context.Background(), asked))
			r.Abort()
			require.NoError(t, r.sched.Await(context.Background(), r.Done()))
			require.Equal(t, tt.held, leases.held["second"])
			require.False(t, leases.held["first"])
			r.pass(2 * time.Hour)
			require.Empty(t, leases.held)
		})
	}
}

// TestALeaseThatIsLost kills the process, or ends its launch, and says why first.
func TestALeaseThatIsLost(t *testing.T) {
	t.Parallel()
	for name, started := range map[string]bool{"while it runs": true, "before it is up": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			errLost := errors.New("somebody else has it")
			leases := &counted{held: make(map[string]bool)}
			r := newRig(t, func(_ *rig, s *setup) { s.link.Leases, s.link.SessionID = leases, "first" })
			if started {
				r.up()
				leases.lost(errLost)
			} else {
				leases.then = func(context.Context) { leases.lost(errLost) }
				r.launch()
			}
			r.settle()
			at := r.ended()
			require.Empty(t, leases.held)
			if started {
				require.Equal(t, "SIGKILL", at.Signal)
			}
		})
	}
}
