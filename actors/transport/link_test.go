package transport_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/actors/router/routertest"
	"github.com/agent-troupe/troupe/actors/transport"
	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

func TestALaunchThatFails(t *testing.T) {
	t.Parallel()
	odd := errors.New("odd")
	for name, c := range map[string]struct {
		spawn func(context.Context) error
		want  string
		is    error
	}{
		"any error":        {func(context.Context) error { return odd }, "start agent /bin/agent in /work: odd", odd},
		"one that is told": {func(context.Context) error { return &session.StartError{Path: "x", Err: odd} }, "start agent x: odd", odd},
		"a panic":          {func(context.Context) error { panic(odd) }, "start agent /bin/agent in /work: panic while handling Spawn: odd", odd},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.proc.spawn = c.spawn
			r.actor()
			s := r.ended()
			var start *session.StartError
			require.ErrorAs(t, s.Err.Err, &start)
			require.EqualError(t, s.Err.Err, c.want)
			require.ErrorIs(t, s.Err.Err, c.is)
			require.NoError(t, s.Leftover.Err)
			assert.True(t, r.side.told.Drained, "nothing will come")
			assert.False(t, r.side.told.SettingUp)
			assert.Positive(t, r.frames, "the router is told")
			assert.Equal(t, []string{"0s spawn"}, r.proc.log)
		})
	}
}

type nobody struct{}

func (nobody) Spawn(context.Context, session.Command) (session.Process, error) { return nil, nil }

func TestASpawnerThatReturnsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(_ *rig, s *setup) { s.link.Spawner = nobody{} })
	r.actor()
	require.ErrorContains(t, r.ended().Err.Err, "neither a process nor an error")
}

// waits makes the spawner wait until its context ends, or, if that is not
// heeded, until d has passed.
func (f *fake) waits(d time.Duration, heeds bool) {
	f.spawn = func(ctx context.Context) error {
		over := make(chan struct{})
		f.r.sched.AfterFunc(d, func() { close(over) })
		if !heeds {
			ctx = context.Background()
		}
		return f.r.sched.Await(ctx, over)
	}
}

func TestClosedWhileItIsLaunched(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		heeds bool
		stage machine.Stage
		abort bool
		want  []string
	}{
		"a launch that can be given up":     {true, machine.ClosedStdin, false, []string{"0s spawn"}},
		"aborted":                           {true, machine.Open, true, []string{"0s spawn"}},
		"a launch that goes on":             {false, machine.ClosedStdin, false, []string{"0s spawn", "10s EOF", "10s SIGKILL", "10s sweep", "10s reap"}},
		"a launch that goes on, terminated": {false, machine.Terminated, false, []string{"0s spawn", "10s SIGTERM", "10s SIGKILL", "10s sweep", "10s reap", "10s EOF"}},
		"a launch that goes on, aborted":    {false, machine.Open, true, []string{"0s spawn", "10s SIGKILL", "10s SIGKILL", "10s sweep", "10s reap", "10s EOF"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.proc.waits(10*time.Second, c.heeds)
			for _, what := range []string{"EOF", "SIGTERM", "SIGKILL"} {
				r.proc.on[what] = r.proc.exit(session.ExitStatus{})
			}
			r.actor()
			r.pass(time.Second)
			require.Equal(t, machine.Launching, r.Status().Phase)
			if c.abort {
				r.Abort()
			} else {
				r.want(c.stage)
			}
			s := r.ended()
			assert.Equal(t, c.want, r.proc.log)
			assert.Equal(t, c.heeds, s.Err.Err != nil)
		})
	}
}

func TestAbortedWhileItIsLaunchedAndNobodyDrivesIt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.proc.waits(10*time.Second, false)
	r.proc.on["SIGKILL"] = r.proc.exit(killed)
	at := r.actor()
	r.settle()
	require.NoError(t, kernel.StopAndWait(t.Context(), at))
	r.Abort()
	r.ended()
	assert.Equal(t, []string{"0s spawn", "10s SIGKILL"}, r.proc.log[:2])
}

func TestClosedBeforeItIsLaunched(t *testing.T) {
	t.Parallel()
	for name, closed := range map[string]func(r *rig){
		"wanted":  func(r *rig) { r.want(machine.ClosedStdin) },
		"aborted": func(r *rig) { r.Abort() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			require.Equal(t, machine.Idle, r.Status().Phase)
			closed(r)
			r.actor()
			require.NoError(t, r.ended().Err.Err)
			assert.Empty(t, r.proc.log, "nothing was started")
			assert.True(t, r.side.told.Drained)
		})
	}
}

func TestARunningLink(t *testing.T) {
	t.Parallel()
	r := newRig(t).launch()
	r.Launch() // does nothing more
	r.settle()
	assert.Equal(t, 4711, r.Status().PID)
	assert.Equal(t, 1, strings.Count(r.proc.in.got.String(), `"subtype":"initialize"`), "there is somebody to write to")
	assert.Positive(t, r.frames, "the router is told")
	r.proc.say(assistant(1))
	r.settle()
	assert.Equal(t, []string{assistant(1)}, r.content())
	assert.Equal(t, []string{"0s spawn"}, r.proc.log)
	r.proc.exit(session.ExitStatus{})()
	r.ended()
}

func TestAResultWrittenJustBeforeTheExitIsNotLost(t *testing.T) {
	t.Parallel()
	for _, chunk := range []int{0, 1, 7} {
		r := newRig(t).up()
		r.proc.out.chunk = chunk
		r.proc.say(assistant(1), assistant(2))
		r.proc.out.write(assistant(3)) // without a newline
		r.proc.exit(session.ExitStatus{Code: 1})()
		s := r.ended()
		assert.Equal(t, []string{assistant(1), assistant(2), assistant(3)}, r.content())
		assert.True(t, r.side.told.Drained)
		assert.Equal(t, 1, s.Exit.Code)
		require.NoError(t, s.Err.Err)
		_, err := r.side.Call("a", []byte(`{"subtype":"a"}`), 0)
		require.NoError(t, err)
		r.settle()
		assert.Empty(t, r.proc.in.got.String(), "there is nobody to write to")
	}
}

func TestAGrandchildHoldsStdout(t *testing.T) {
	t.Parallel()
	t.Run("until the group is killed", func(t *testing.T) {
		t.Parallel()
		r := newRig(t).up()
		r.proc.on["SIGKILL"] = func() { r.proc.say(assistant(2)); r.proc.out.close(); r.proc.err.close() }
		r.proc.say(assistant(1))
		r.proc.end(session.ExitStatus{})
		r.ended()
		assert.Equal(t, []string{"0s spawn", "2s SIGKILL", "2s sweep", "2s reap", "2s EOF"}, r.proc.log, "the drain grace, then the kill")
		assert.Equal(t, []string{assistant(1), assistant(2)}, r.content())
	})
	t.Run("and nothing takes it away", func(t *testing.T) {
		t.Parallel()
		r := newRig(t).up()
		left := session.ProcInfo{PID: 4712, Command: "cat"}
		r.proc.sweep = func(context.Context) ([]session.ProcInfo, error) { return []session.ProcInfo{left}, nil }
		r.proc.say(assistant(1))
		r.proc.end(session.ExitStatus{})
		s := r.ended()
		assert.Equal(t, []string{"0s spawn", "2s SIGKILL", "2s sweep", "4s close output", "4s reap", "4s EOF"}, r.proc.log)
		assert.Equal(t, []string{assistant(1)}, r.content())
		require.EqualError(t, s.Leftover.Err, "1 process of the agent did not stop: 4712 (cat)")
	})
	t.Run("and the sweep does not know it", func(t *testing.T) {
		t.Parallel()
		for _, held := range []string{"stdout", "stderr"} {
			r := newRig(t).up()
			r.proc.say(assistant(1))
			if held == "stdout" {
				r.proc.err.close()
			} else {
				r.proc.out.close()
			}
			r.proc.end(session.ExitStatus{})
			s := r.ended()
			assert.Equal(t, []string{assistant(1)}, r.content())
			var left *session.LeftoverError
			require.ErrorAs(t, s.Leftover.Err, &left)
			require.ErrorContains(t, s.Leftover.Err, "still holds the agent's "+held)
		}
	})
	t.Run("and nobody does, but the pump had no time", func(t *testing.T) {
		t.Parallel()
		r := newRig(t).up()
		r.proc.let = true
		r.proc.end(session.ExitStatus{})
		require.NoError(t, r.ended().Leftover.Err)
	})
	t.Run("and a callback that does not return is no process", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, func(r *rig, s *setup) {
			s.link.Stderr = func(string) { _ = r.sched.Await(r.t.Context(), make(chan struct{})) }
		}).up()
		r.proc.err.write("line\n")
		r.settle()
		r.proc.exit(session.ExitStatus{})()
		require.NoError(t, r.sched.Await(context.Background(), r.Done()))
		require.NoError(t, r.Status().Leftover.Err)
	})
	t.Run("only stderr", func(t *testing.T) {
		t.Parallel()
		r := newRig(t).up()
		r.proc.on["SIGKILL"] = func() { r.proc.err.close() }
		r.proc.out.close()
		r.proc.end(session.ExitStatus{})
		r.ended()
		assert.Equal(t, "2s SIGKILL", r.proc.log[1])
	})
}

func TestWhatCannotBeSwept(t *testing.T) {
	t.Parallel()
	odd := errors.New("odd")
	for name, c := range map[string]struct {
		change func(f *fake)
		want   string
		is     error
	}{
		"the sweep fails": {func(f *fake) {
			f.sweep = func(context.Context) ([]session.ProcInfo, error) { return nil, odd }
		}, "the agent's process tree could not be swept: odd", odd},
		"the sweep takes too long": {func(f *fake) {
			f.sweep = func(ctx context.Context) ([]session.ProcInfo, error) {
				return nil, f.r.sched.Await(ctx, make(chan struct{}))
			}
		}, "the agent's process tree could not be swept: sweep of the agent's process tree: no answer within 10s", context.DeadlineExceeded},
		"some are left": {func(f *fake) {
			f.sweep = func(context.Context) ([]session.ProcInfo, error) {
				return []session.ProcInfo{{PID: 1, Command: "a"}, {PID: 2, Command: "b"}}, odd
			}
		}, "2 processes of the agent did not stop: 1 (a), 2 (b)", odd},
		"the leader cannot be reaped": {func(f *fake) { f.reapErr = odd }, "the agent's process tree could not be swept: odd", odd},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t).up()
			c.change(r.proc)
			r.proc.exit(session.ExitStatus{})()
			s := r.ended()
			require.EqualError(t, s.Leftover.Err, c.want)
			require.ErrorIs(t, s.Leftover.Err, c.is)
		})
	}
}

func TestStderrIsDrainedAndKept(t *testing.T) {
	t.Parallel()
	r := newRig(t).up()
	var want []string
	for i := range 5000 {
		line := fmt.Sprintf("line %04d %s", i, strings.Repeat("x", 80))
		want = append(want, line)
		r.proc.err.write(line + "\r\n\n")
	}
	long := strings.Repeat("y", 200<<10)
	r.proc.err.write(long + "\nlast")
	r.settle()
	r.proc.exit(session.ExitStatus{})()
	s := r.ended()
	assert.Len(t, s.Stderr, 16<<10, "a bounded tail")
	assert.True(t, strings.HasSuffix(s.Stderr, "y\nlast"))
	require.Greater(t, len(r.stderr), len(want))
	assert.Equal(t, want, r.stderr[:len(want)])
	pieces := r.stderr[len(want):]
	assert.Equal(t, "last", pieces[len(pieces)-1])
	assert.Equal(t, long, strings.Join(pieces[:len(pieces)-1], ""), "a long line comes in pieces")
	for _, p := range pieces {
		assert.LessOrEqual(t, len(p), 65<<10)
	}
}

func TestAProcessWithoutStderr(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.proc.err = nil
	r.up()
	r.proc.out.close()
	r.proc.end(session.ExitStatus{})
	assert.Empty(t, r.ended().Stderr)
}

func TestGiveUp(t *testing.T) {
	t.Parallel()
	r := newRig(t).up()
	r.proc.on["SIGKILL"] = r.proc.exit(killed)
	r.Giveup(session.ErrConsumerStalled)
	r.Giveup(errors.New("later"))
	s := r.ended()
	require.ErrorIs(t, s.Err.Err, session.ErrConsumerStalled, "the first reason stands")
	assert.Equal(t, killed, s.Exit)
}

// TestAnAgentThatHearsNothingMore has closed its stdin, or broken it: it is
// sent home.
func TestAnAgentThatHearsNothingMore(t *testing.T) {
	t.Parallel()
	write := func(r *rig) {
		r.proc.in.fail = errors.New("broken pipe")
		_, err := r.side.Call("a", []byte(`{"subtype":"a"}`), 0)
		require.NoError(t, err)
		r.settle()
	}
	t.Run("idle", func(t *testing.T) {
		t.Parallel()
		r := newRig(t).up()
		r.proc.on["SIGTERM"] = r.proc.exit(session.ExitStatus{Code: 143})
		write(r)
		_, err := r.side.Call("b", []byte(`{"subtype":"b"}`), 0)
		require.NoError(t, err)
		assert.Equal(t, 2, r.side.Calls(), "the session decides what becomes of them")
		r.ended()
		assert.Equal(t, []string{"0s spawn", "0s EOF", "5s SIGTERM"}, r.proc.log[:3])
	})
	t.Run("with a gate open", func(t *testing.T) {
		t.Parallel()
		r := newRig(t).up()
		r.proc.on["SIGKILL"] = r.proc.exit(killed)
		r.proc.say(`{"type":"control_request","request_id":"p","request":{"subtype":"can_use_tool"}}`)
		r.settle()
		require.Equal(t, 1, r.side.told.Gates)
		write(r)
		r.ended()
		assert.Equal(t, "0s SIGKILL", r.proc.log[1], "at once: no EOF while it waits for a decision")
	})
}

// TestAnAgentThatClosesItsStdout can answer nothing any more.
func TestAnAgentThatClosesItsStdout(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		running bool
		want    []string
	}{
		"idle":      {false, []string{"0s spawn", "2s EOF", "7s SIGTERM", "10s SIGKILL"}},
		"in a turn": {true, []string{"0s spawn", "2s SIGTERM", "5s SIGKILL"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t).up()
			r.proc.on["SIGKILL"] = r.proc.exit(killed)
			if c.running {
				r.proc.say(`{"type":"system","subtype":"session_state_changed","state":"running"}`)
				r.settle()
				r.content()
			}
			r.proc.out.close()
			r.ended()
			assert.Equal(t, c.want, r.proc.log[:len(c.want)])
		})
	}
}

func TestAnAgentThatClosesItsStdoutAndExits(t *testing.T) {
	t.Parallel()
	r := newRig(t).up()
	r.proc.out.close()
	r.proc.exitAfter(1999*time.Millisecond, 0)()
	r.ended()
	assert.NotContains(t, strings.Join(r.proc.log, " "), "SIGTERM", "that is how most of them end")
}

func TestTheUnreadRestOfAnAgentThatIsGone(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(_ *rig, s *setup) { s.side.Limits = &session.Limits{Bytes: 1000, HardBytes: 4000} }).up()
	line := `{"type":"assistant","pad":"` + strings.Repeat("x", 971) + `"}`
	for range 3 {
		r.proc.say(line)
		r.settle()
	}
	_, unreadBytes := r.side.Unread()
	require.Equal(t, int64(len(line)), unreadBytes, "the reader stopped at the soft bound")
	r.proc.exit(session.ExitStatus{Code: 3})()
	s := r.ended()
	assert.Equal(t, []string{line, line, line}, r.content(), "what is left in the pipe is read whatever the credit")
	require.NoError(t, s.Err.Err)
	assert.Zero(t, r.sched.Now().Sub(r.start), "and nobody waits for a grace")
}

func TestNobodyReadsWhatAnAgentLeft(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(_ *rig, s *setup) { s.side.Limits = &session.Limits{Bytes: 1000, HardBytes: 4000} }).up()
	r.proc.out.chunk = 500
	line := `{"type":"assistant","pad":"` + strings.Repeat("x", 971) + `"}`
	for range 20 {
		r.proc.say(line)
	}
	r.settle()
	r.proc.exit(session.ExitStatus{Code: 3})()
	s := r.ended()
	assert.Equal(t, 4*time.Second, r.sched.Now().Sub(r.start), "two drain graces, then it is given up")
	require.ErrorIs(t, s.Err.Err, session.ErrConsumerStalled)
	assert.Len(t, r.content(), 4, "up to the hard bound")
}

// keeper gives its processes the context of their spawn, as exec.CommandContext
// does.
type keeper struct {
	session.Spawner
	given chan context.Context
}

func (k keeper) Spawn(ctx context.Context, c session.Command) (session.Process, error) {
	k.given <- ctx
	return k.Spawner.Spawn(ctx, c)
}

// production is a link on goroutines, with the user's side and its actor.
func production(t *testing.T, sys *kernel.System, spawner session.Spawner) (*routertest.Router, *transport.Link, *kernel.Address[machine.ToTransport]) {
	t.Helper()
	address := &kernel.Address[machine.ToTransport]{}
	long := session.Graces{EOF: time.Minute, Terminate: time.Minute, Output: time.Minute, Sweep: time.Minute} // on whatever machine
	l, err := routertest.New(sys, routertest.Config{Config: config}, func(m machine.ToTransport) { address.Tell(nil, m) })
	require.NoError(t, err)
	k := transport.NewLink(transport.LinkConfig{
		Clock: sys.Clock(), Exec: sys.Executor(), Graces: long, Spawner: spawner, Emit: func(session.Event) {},
		Router: func(w *kernel.Worker, in machine.Input) { l.At.Tell(w, in) }, Session: func(machine.LifeInput) {},
		Self: func(m machine.ToTransport) { address.Tell(nil, m) }, Room: func() <-chan struct{} { return nil }, Idle: func() {},
		Role: sys.NewRole, Stderr: func(string) {},
	})
	require.NoError(t, kernel.SpawnRoot(sys, "transport#1", address, &transport.Actor{Present: func() *transport.Link { return k }}))
	address.Tell(nil, machine.Launch{Gen: 1})
	return l, k, address
}

func TestTheContextOfASpawnOutlivesIt(t *testing.T) {
	t.Parallel()
	sys := kernel.NewSystem(kernel.Config{})
	k := keeper{transport.InMemory{Clock: sys.Clock(), Exec: sys.Executor(), Program: chatty}, make(chan context.Context, 1)}
	l, lk, address := production(t, sys, k)
	ctx := <-k.given
	require.Eventually(t, func() bool { return l.Told().SettingUp }, time.Minute, time.Millisecond)
	require.NoError(t, ctx.Err())
	address.Tell(nil, machine.Climb{Stage: machine.ClosedStdin})
	require.NoError(t, kernel.GoExecutor{}.Await(t.Context(), lk.Done()))
	require.NoError(t, kernel.StopAndWait(t.Context(), address))
}

// chatty has something to say to every line, until its stdin ends.
var chatty = program(func(_ agent.Launch, p agent.Port) agent.Exit {
	for {
		if _, err := p.Next(-1); err != nil {
			return agent.Exit{}
		}
		if p.Write([]byte(assistant(1)+"\n")) != nil {
			return agent.Exit{Code: 1}
		}
	}
})

// TestManyLinksInProduction runs whole lives of in-memory links on goroutines,
// for the race detector.
func TestManyLinksInProduction(t *testing.T) {
	t.Parallel()
	for range 20 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			sys := kernel.NewSystem(kernel.Config{})
			l, lk, address := production(t, sys, transport.InMemory{Clock: sys.Clock(), Exec: sys.Executor(), Program: chatty})
			require.Eventually(t, func() bool { return l.Told().SettingUp }, time.Minute, time.Millisecond)
			const calls = 100
			for i := range calls {
				l.At.Tell(nil, machine.Called{ID: fmt.Sprint("a", i), Subtype: "interrupt", Body: []byte(`{"subtype":"interrupt"}`), Own: true})
			}
			// They are on their way to the actor, as before a close that the routing confirms.
			require.Eventually(t, func() bool { return len(l.Waits()) == 1+calls }, time.Minute, time.Millisecond)
			address.Tell(nil, machine.Climb{Stage: machine.ClosedStdin})
			require.NoError(t, kernel.GoExecutor{}.Await(t.Context(), lk.Done()))
			answered := func() bool { // the router may be behind the link
				unread, _ := l.Unread()
				return unread == 1+calls
			}
			require.Eventually(t, answered, time.Minute, time.Millisecond, "an answer to each line, initialize too")
			assert.Equal(t, session.ExitStatus{}, lk.Status().Exit)
			require.NoError(t, kernel.StopAndWait(t.Context(), address))
		})
	}
}

// TestWorkThatWaitsForRoom is written when the agent has taken what is before it.
func TestWorkThatWaitsForRoom(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(_ *rig, s *setup) {
		s.side.UserLine = func(m *protocol.UserMessage) ([]byte, error) {
			return append(bytes.Repeat([]byte(m.UUID), 20<<20), '\n'), nil
		}
	}).up()
	r.proc.in.blocked = make(chan struct{})
	for _, id := range []string{"1", "2", "3"} {
		_, err := r.side.Send(context.Background(), &protocol.UserMessage{Common: protocol.Common{UUID: id}})
		require.NoError(t, err)
	}
	r.settle()
	told := r.frames
	close(r.proc.in.blocked)
	r.proc.in.blocked = nil
	r.settle()
	assert.Greater(t, r.frames, told, "the router is told")
	got := r.proc.in.got.Bytes()
	assert.Equal(t, 3, bytes.Count(got, []byte("\n")))
	assert.True(t, bytes.HasPrefix(got, []byte("1")) && bytes.HasSuffix(got, []byte("3\n")), "in order")
	r.proc.exit(session.ExitStatus{})()
	r.ended()
}

// A transport actor that was down while a process died and the next one was asked for has
// messages for the first in its mailbox: they are not the next one's.
func TestMessagesForTheProcessBefore(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(_ *rig, s *setup) { s.link.Gen = 2 })
	r.lives++
	require.NoError(t, kernel.SpawnRoot(r.sys, "transport#1", &r.address, &transport.Actor{Present: func() *transport.Link { return r.Link }}))
	r.tell(machine.Write{Line: []byte("for the first\n")})
	r.tell(machine.Climb{Gen: 1, Stage: machine.Killed, Why: "the first"})
	r.tell(machine.Launch{Gen: 2})
	r.settle()
	require.Equal(t, machine.Up, r.Status().Phase)
	require.Equal(t, machine.Open, r.Status().Stage)
	require.NotContains(t, r.proc.in.got.String(), "for the first")
	r.tell(machine.Climb{Gen: 2, Stage: machine.Killed})
	r.settle()
	require.Equal(t, machine.Killed, r.Status().Stage)
	r.ended()
}
