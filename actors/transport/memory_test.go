package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/transport"
	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/session"
)

// program is an agent that is a function.
type program func(agent.Launch, agent.Port) agent.Exit

func (program) AgentName() string                               { return "test" }
func (p program) Serve(l agent.Launch, o agent.Port) agent.Exit { return p(l, o) }

// echo says every line back until its stdin ends.
var echo = program(func(_ agent.Launch, p agent.Port) agent.Exit {
	for {
		line, err := p.Next(-1)
		if err != nil {
			return agent.Exit{}
		}
		if p.Write(append(line, '\n')) != nil {
			return agent.Exit{Code: 1}
		}
	}
})

// world is one of the two sets of seams.
type world struct {
	clock kernel.Clock
	exec  kernel.Executor
	sched *sim.Scheduler // nil in production
}

func (w *world) await(t *testing.T, done <-chan struct{}) {
	t.Helper()
	require.NoError(t, w.exec.Await(t.Context(), done))
}

// do runs fn as a task and waits for it.
func (w *world) do(t *testing.T, fn func()) {
	t.Helper()
	done := make(chan struct{})
	w.exec.Go(func() { defer close(done); fn() })
	w.await(t, done)
}

// both runs a test on the production seams and on the seeded scheduler.
func both(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Run("production", func(t *testing.T) {
		t.Parallel()
		test(t, &world{clock: kernel.NewClock(nil), exec: kernel.GoExecutor{}})
	})
	t.Run("simulation", func(t *testing.T) {
		t.Parallel()
		for seed := range uint64(20) {
			s := sim.New(seed)
			test(t, &world{clock: s, exec: s, sched: s})
			require.NoError(t, s.Run(10_000))
			require.Zero(t, s.Parked(), "seed %d: tasks left waiting", seed)
			s.Close()
		}
	})
}

func (w *world) spawn(t *testing.T, p agent.Program, c ...session.Command) session.Process {
	t.Helper()
	c = append(c, session.Command{})
	proc, err := transport.InMemory{Clock: w.clock, Exec: w.exec, Program: p}.Spawn(t.Context(), c[0])
	require.NoError(t, err)
	return proc
}

// all reads a stream to its end.
func (w *world) all(t *testing.T, r io.Reader) string {
	t.Helper()
	var got []byte
	w.do(t, func() {
		var err error
		got, err = io.ReadAll(r)
		assert.NoError(t, err)
	})
	return string(got)
}

func (w *world) exit(t *testing.T, p session.Process) session.ExitStatus {
	t.Helper()
	w.await(t, p.Exited())
	status, err := p.Reap()
	require.NoError(t, err)
	return status
}

func TestAnInMemoryAgentServes(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w *world) {
		var launch agent.Launch
		p := w.spawn(t, program(func(l agent.Launch, port agent.Port) agent.Exit {
			launch = l
			port.Stderr([]byte("hello\n"))
			return echo(l, port)
		}), session.Command{Args: []string{"-p"}, Env: []string{"A=B"}, Dir: "/x", Seed: 7})
		big := strings.Repeat("x", 200<<10) // more than two pipes hold
		w.exec.Go(func() {
			for _, chunk := range []string{"on", "e\ntw", "o\n", "", big + "\n", "last"} {
				_, err := p.Stdin().Write([]byte(chunk))
				assert.NoError(t, err)
			}
			assert.NoError(t, p.Stdin().Close())
		})
		assert.Equal(t, "one\ntwo\n"+big+"\nlast\n", w.all(t, p.Stdout()))
		assert.Equal(t, "hello\n", w.all(t, p.Stderr()))
		assert.Equal(t, session.ExitStatus{}, w.exit(t, p))
		assert.Equal(t, agent.Launch{Args: []string{"-p"}, Env: []string{"A=B"}, Dir: "/x", Seed: 7}, launch)
		assert.Zero(t, p.PID())
		left, err := p.Sweep(t.Context())
		assert.Empty(t, left)
		assert.NoError(t, err)
		_, err = p.Stdin().Write([]byte("x\n"))
		require.ErrorIs(t, err, io.ErrClosedPipe)
	})
}

func TestHowAnInMemoryAgentEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		serve  program
		act    func(p session.Process)
		want   session.ExitStatus
		stderr string
	}{
		"a code":       {func(agent.Launch, agent.Port) agent.Exit { return agent.Exit{Code: 3} }, nil, session.ExitStatus{Code: 3}, ""},
		"a signal":     {func(agent.Launch, agent.Port) agent.Exit { return agent.Exit{Signal: "TERM"} }, nil, session.ExitStatus{Code: -1, Signal: "SIGTERM"}, ""},
		"a panic":      {func(agent.Launch, agent.Port) agent.Exit { panic("odd") }, nil, session.ExitStatus{Code: 2}, "the in-memory agent panicked\n"},
		"EOF":          {untilErr(io.EOF), func(p session.Process) { _ = p.Stdin().Close() }, session.ExitStatus{Code: 9}, ""},
		"SIGTERM":      {untilErr(agent.ErrTerminated), func(p session.Process) { _ = p.Signal(session.SignalTerminate) }, session.ExitStatus{Code: 9}, ""},
		"SIGINT":       {untilErr(agent.ErrInterrupted), func(p session.Process) { _ = p.Signal(session.SignalInterrupt) }, session.ExitStatus{Code: 9}, ""},
		"SIGKILL":      {untilErr(agent.ErrKilled), func(p session.Process) { _ = p.Kill() }, killed, ""},
		"all at once":  {untilErr(agent.ErrKilled), func(p session.Process) { _ = p.Signal(session.SignalTerminate); _ = p.Stdin().Close(); _ = p.Kill() }, killed, ""},
		"after SIGINT": {untilErr(agent.ErrTerminated), func(p session.Process) { _ = p.Signal(session.SignalInterrupt); _ = p.Signal(session.SignalTerminate) }, session.ExitStatus{Code: 9}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, w *world) {
				p := w.spawn(t, c.serve)
				if c.act != nil {
					c.act(p)
				}
				ended(t, c.want, c.stderr != "", w.exit(t, p))
				assert.Equal(t, c.stderr, w.all(t, p.Stderr()))
				assert.Empty(t, w.all(t, p.Stdout()))
				_, err := p.Stdin().Write([]byte("x"))
				if !errors.Is(err, agent.ErrKilled) { // killed before it came to write
					assert.ErrorIs(t, err, io.ErrClosedPipe)
				}
			})
		})
	}
}

// untilErr waits for one report and exits with 9.
func untilErr(want error) program {
	return func(_ agent.Launch, p agent.Port) agent.Exit {
		for {
			if _, err := p.Next(-1); errors.Is(err, want) {
				return agent.Exit{Code: 9}
			}
		}
	}
}

// steps is a program that is played: each call is a step. What embeds it is
// served.
type steps func(agent.Port) (x agent.Exit, ended bool)

func (*steps) AgentName() string                         { return "test" }
func (*steps) Serve(agent.Launch, agent.Port) agent.Exit { return agent.Exit{Code: 77} }
func (s *steps) Open(asked agent.Program, _ agent.Launch, p agent.Port) agent.Player {
	if asked != agent.Program(s) {
		return nil
	}
	return playing{*s, p}
}

type playing struct {
	step steps
	port agent.Port
}

func (p playing) Play() (agent.Exit, bool) { return p.step(p.port) }

// echoing says back what is there, until its stdin ends, or what want is comes.
func echoing(want error) *steps {
	s := steps(func(p agent.Port) (agent.Exit, bool) {
		for {
			line, err := p.Next(0)
			switch {
			case err == nil && string(line) == "panic":
				panic("odd")
			case err == nil:
				_ = p.Write(append(line, '\n'))
			case errors.Is(err, agent.ErrWaited):
				return agent.Exit{}, false
			case errors.Is(err, want):
				return agent.Exit{Code: 9}, true
			}
		}
	})
	return &s
}

// ended checks how an agent has ended. One that panicked says where.
func ended(t *testing.T, want session.ExitStatus, panicked bool, got session.ExitStatus) {
	t.Helper()
	if panicked {
		failed, ok := errors.AsType[*session.PanicError](got.Err)
		require.True(t, ok)
		assert.Equal(t, "odd", failed.Value)
		assert.Contains(t, string(failed.Stack), "memory_test.go")
		got.Err = nil
	}
	assert.Equal(t, want, got)
}

func TestAnInMemoryAgentThatIsPlayed(t *testing.T) {
	t.Parallel()
	line := func(line string) func(p session.Process) {
		return func(p session.Process) { _, _ = p.Stdin().Write([]byte(line + "\n")) }
	}
	for name, c := range map[string]struct {
		until error
		act   func(p session.Process)
		want  session.ExitStatus
	}{
		"EOF":     {io.EOF, func(p session.Process) { _ = p.Stdin().Close() }, session.ExitStatus{Code: 9}},
		"SIGTERM": {agent.ErrTerminated, func(p session.Process) { _ = p.Signal(session.SignalTerminate) }, session.ExitStatus{Code: 9}},
		"SIGINT after EOF": {agent.ErrInterrupted, func(p session.Process) {
			_ = p.Stdin().Close()
			_ = p.Signal(session.SignalInterrupt)
		}, session.ExitStatus{Code: 9}},
		"SIGKILL": {agent.ErrKilled, func(p session.Process) { _ = p.Kill() }, killed},
		"a panic": {io.EOF, line("panic"), session.ExitStatus{Code: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, w *world) {
				p := w.spawn(t, echoing(c.until))
				got := make([]byte, 4)
				for _, s := range []string{"one", "two"} {
					w.do(t, func() {
						line(s)(p)
						_, err := io.ReadFull(p.Stdout(), got)
						assert.NoError(t, err)
					})
					assert.Equal(t, s+"\n", string(got))
				}
				c.act(p)
				ended(t, c.want, name == "a panic", w.exit(t, p))
			})
		})
	}
}

// TestAPlayedAgentMissesNothing closes stdin, or signals, while the agent is
// about to rest.
func TestAPlayedAgentMissesNothing(t *testing.T) {
	t.Parallel()
	w := &world{clock: kernel.NewClock(nil), exec: kernel.GoExecutor{}}
	for i := range 500 {
		until, act := io.EOF, func(p session.Process) { _ = p.Stdin().Close() }
		if i%2 == 1 {
			until, act = agent.ErrTerminated, func(p session.Process) { _ = p.Signal(session.SignalTerminate) }
		}
		p := w.spawn(t, echoing(until))
		act(p)
		w.await(t, p.Exited())
	}
}

// TestASignalThatComesBeforeAPlayedAgentRests sends it when the agent has just found that
// there is nothing.
func TestASignalThatComesBeforeAPlayedAgentRests(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(p session.Process) error{
		"SIGTERM": func(p session.Process) error { return p.Signal(session.SignalTerminate) },
		"SIGKILL": session.Process.Kill,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sim.New(1)
			w := &world{clock: s, exec: s, sched: s}
			var p session.Process
			played := 0
			agentSteps := steps(func(port agent.Port) (agent.Exit, bool) {
				_, err := port.Next(0)
				if played++; played > 1 {
					return agent.Exit{Code: 9}, true
				}
				assert.ErrorIs(t, err, agent.ErrWaited)
				assert.NoError(t, act(p))
				return agent.Exit{}, false
			})
			p = w.spawn(t, &agentSteps)
			require.NoError(t, s.Run(100))
			assert.Equal(t, 2, played)
			w.await(t, p.Exited())
		})
	}
}

func TestAProgramThatEmbedsAPlayedOneIsServed(t *testing.T) {
	t.Parallel()
	w := &world{clock: kernel.NewClock(nil), exec: kernel.GoExecutor{}}
	p := w.spawn(t, struct{ *steps }{echoing(io.EOF)})
	assert.Equal(t, session.ExitStatus{Code: 77}, w.exit(t, p))
}

func TestAKilledInMemoryAgentWritesNothingMore(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w *world) {
		blocked := make(chan struct{})
		p := w.spawn(t, program(func(_ agent.Launch, port agent.Port) agent.Exit {
			assert.NoError(t, port.Write([]byte("before\n")))
			close(blocked)
			err := port.Write(make([]byte, 1<<20)) // nobody reads
			if !errors.Is(err, agent.ErrKilled) {  // it died before it wrote
				assert.ErrorIs(t, err, io.ErrClosedPipe)
			}
			assert.ErrorIs(t, port.Write([]byte("after\n")), agent.ErrKilled)
			_, err = port.Next(-1)
			assert.ErrorIs(t, err, agent.ErrKilled)
			return agent.Exit{}
		}))
		w.await(t, blocked)
		require.NoError(t, p.Kill())
		assert.Equal(t, killed, w.exit(t, p))
		got := w.all(t, p.Stdout())
		assert.True(t, strings.HasPrefix(got, "before\n"), "what was written stays readable")
	})
}

func TestHowLongAnInMemoryAgentWaits(t *testing.T) {
	t.Parallel()
	s := sim.New(1)
	w := &world{clock: s, exec: s, sched: s}
	var log []string
	p := w.spawn(t, program(func(_ agent.Launch, port agent.Port) agent.Exit {
		note := func(line []byte, err error) {
			log = append(log, fmt.Sprintf("%v %q %v", port.(agent.Elapser).Elapsed(), line, err))
		}
		note(port.Next(0))
		note(port.Next(time.Second))
		note(port.Next(time.Hour))
		note(port.Next(0))
		note(port.Next(-1))
		note(port.Next(time.Second))
		return agent.Exit{}
	}))
	s.AfterFunc(2*time.Second, func() { s.Go(func() { _, _ = p.Stdin().Write([]byte("a\nb\n")) }) })
	s.AfterFunc(3*time.Second, func() { _ = p.Stdin().Close() })
	w.await(t, p.Exited())
	assert.Equal(t, []string{
		`0s "" agent: nothing arrived in time`,
		`1s "" agent: nothing arrived in time`,
		`2s "a" <nil>`, `2s "b" <nil>`,
		`3s "" EOF`,
		`4s "" agent: nothing arrived in time`,
	}, log)
}

// TestAnInMemoryAgentMissesNoEOF closes stdin while the agent is about to wait
// for it.
func TestAnInMemoryAgentMissesNoEOF(t *testing.T) {
	t.Parallel()
	const rounds = 5000
	w := &world{clock: kernel.NewClock(nil), exec: kernel.GoExecutor{}}
	r := kernel.NewRand(nil)
	for i := range rounds {
		p := w.spawn(t, untilErr(io.EOF))
		for range i % 64 {
			_ = kernel.NewUUID(r) // a little later each time
		}
		_ = p.Stdin().Close()
		w.await(t, p.Exited())
	}
}

func TestNoProgram(t *testing.T) {
	t.Parallel()
	_, err := transport.InMemory{}.Spawn(context.Background(), session.Command{})
	var start *session.StartError
	require.ErrorAs(t, err, &start)
	require.EqualError(t, err, "start agent: the in-memory agent is nil")
}

func TestOutputThatIsGivenUp(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w *world) {
		p := w.spawn(t, program(func(_ agent.Launch, port agent.Port) agent.Exit {
			_, _ = port.Next(-1)
			if errors.Is(port.Write([]byte("x\n")), io.ErrClosedPipe) {
				return agent.Exit{Code: 7}
			}
			return agent.Exit{}
		}))
		p.CloseOutput()
		assert.Empty(t, w.all(t, p.Stdout()))
		assert.Empty(t, w.all(t, p.Stderr()))
		_ = p.Stdin().Close()
		assert.Equal(t, 7, w.exit(t, p).Code)
	})
}
