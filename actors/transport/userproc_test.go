package transport_test

import (
	"context"
	"errors"
	"io"
	goruntime "runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/actors/transport"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// sabotaged is a process of a user's, one of whose methods panics, or ends its goroutine.
type sabotaged struct {
	session.Process
	method string
	with   error // without one it ends its goroutine
}

func (s sabotaged) on(method string) {
	switch {
	case s.method == method && s.with == nil:
		goruntime.Goexit()
	case s.method == method:
		panic(s.with)
	}
}

func (s sabotaged) PID() int                      { s.on("PID"); return s.Process.PID() }
func (s sabotaged) Exited() <-chan struct{}       { s.on("Exited"); return s.Process.Exited() }
func (s sabotaged) Signal(x session.Signal) error { s.on("Signal"); return s.Process.Signal(x) }
func (s sabotaged) CloseOutput()                  { s.on("CloseOutput"); s.Process.CloseOutput() }

// Kill has done its work when it panics.
func (s sabotaged) Kill() error {
	defer s.on("Kill")
	return s.Process.Kill()
}

func (s sabotaged) Sweep(ctx context.Context) ([]session.ProcInfo, error) {
	s.on("Sweep")
	return s.Process.Sweep(ctx)
}

func (s sabotaged) Reap() (session.ExitStatus, error) { s.on("Reap"); return s.Process.Reap() }

func (s sabotaged) Stdin() io.WriteCloser {
	s.on("Stdin")
	return sabotagedPipe{Reader: nil, WriteCloser: s.Process.Stdin(), s: s, name: "Stdin"}
}

func (s sabotaged) Stdout() io.Reader {
	s.on("Stdout")
	return sabotagedPipe{Reader: s.Process.Stdout(), s: s, name: "Stdout"}
}

func (s sabotaged) Stderr() io.Reader {
	s.on("Stderr")
	return sabotagedPipe{Reader: s.Process.Stderr(), s: s, name: "Stderr"}
}

type sabotagedPipe struct {
	io.Reader
	io.WriteCloser
	s    sabotaged
	name string
}

func (p sabotagedPipe) Read(b []byte) (int, error) {
	p.s.on(p.name + ".Read")
	return p.Reader.Read(b)
}

func (p sabotagedPipe) Write(b []byte) (int, error) {
	p.s.on(p.name + ".Write")
	return p.WriteCloser.Write(b)
}

func (p sabotagedPipe) Close() error {
	p.s.on(p.name + ".Close")
	return p.WriteCloser.Close()
}

type sabotages struct {
	session.Spawner
	method string
	with   error
}

func (s sabotages) Spawn(ctx context.Context, c session.Command) (session.Process, error) {
	p, err := s.Spawner.Spawn(ctx, c)
	return sabotaged{p, s.method, s.with}, err
}

// TestMethodsOfAProcessThatPanic end its session at most: in error, with the panic, or, where the process has
// ended anyway, as something that is left over.
func TestMethodsOfAProcessThatPanic(t *testing.T) {
	t.Parallel()
	odd := errors.New("odd")
	rigged := func(t *testing.T, method string) *rig {
		t.Helper()
		return newRig(t, func(r *rig, s *setup) {
			s.link.Spawner = sabotages{s.link.Spawner, method, odd}
			r.proc.on["SIGKILL"] = r.proc.exit(killed)
		})
	}
	panics := func(t *testing.T, err error, method string) {
		t.Helper()
		var p *session.PanicError
		require.ErrorAs(t, err, &p)
		require.ErrorIs(t, err, odd)
		assert.Equal(t, "Process."+method, p.Message)
		assert.NotEmpty(t, p.Stack)
	}
	for _, method := range []string{"PID", "Exited", "Stdin", "Stdout", "Stderr"} {
		t.Run("at the launch "+method, func(t *testing.T) {
			t.Parallel()
			r := rigged(t, method)
			r.actor()
			s := r.ended()
			var start *session.StartError
			require.ErrorAs(t, s.Err.Err, &start)
			panics(t, s.Err.Err, method)
			assert.Equal(t, []string{"0s spawn", "0s SIGKILL"}, r.proc.log, "it was started, and must not stay")
		})
	}
	for _, method := range []string{"Stdin.Write", "Stdout.Read", "Stderr.Read"} {
		t.Run("while it runs "+method, func(t *testing.T) {
			t.Parallel()
			r := rigged(t, method)
			r.actor()
			s := r.ended()
			panics(t, s.Err.Err, method)
			require.NoError(t, s.Leftover.Err)
			assert.Equal(t, "SIGKILL", s.Signal)
			assert.Equal(t, killed, s.Exit)
		})
	}
	for _, method := range []string{"Kill", "Sweep", "Reap", "Stdin.Close", "Signal", "CloseOutput"} {
		t.Run("at the end "+method, func(t *testing.T) {
			t.Parallel()
			r := rigged(t, method).up()
			r.proc.end(session.ExitStatus{}) // its outputs are held, so that they have to be closed
			s := r.ended()
			require.NoError(t, s.Err.Err)
			if method == "Sweep" || method == "Reap" {
				panics(t, s.Leftover.Err, method)
			}
		})
		t.Run("at the close "+method, func(t *testing.T) {
			t.Parallel()
			r := rigged(t, method).up()
			r.want(machine.ClosedStdin)
			s := r.ended()
			require.NoError(t, s.Err.Err)
		})
	}
}

// plain is a process without a rig.
type plain struct {
	exited chan struct{}
	once   sync.Once
	out    [2]*io.PipeReader
	in     *io.PipeWriter
}

func (p *plain) Spawn(context.Context, session.Command) (session.Process, error) { return p, nil }

func (p *plain) PID() int                                          { return 1 }
func (p *plain) Exited() <-chan struct{}                           { return p.exited }
func (p *plain) Stdin() io.WriteCloser                             { return p.in }
func (p *plain) Stdout() io.Reader                                 { return p.out[0] }
func (p *plain) Stderr() io.Reader                                 { return p.out[1] }
func (p *plain) Signal(session.Signal) error                       { return p.Kill() }
func (p *plain) Kill() error                                       { p.once.Do(func() { close(p.exited) }); return nil }
func (p *plain) Sweep(context.Context) ([]session.ProcInfo, error) { return nil, nil }
func (p *plain) CloseOutput()                                      { _, _ = p.out[0].Close(), p.out[1].Close() }
func (p *plain) Reap() (session.ExitStatus, error) {
	return session.ExitStatus{}, nil
}

// TestMethodsOfAProcessThatEndTheirGoroutine leave no process that runs, and no session that waits. A
// simulation does not start goroutines.
func TestMethodsOfAProcessThatEndTheirGoroutine(t *testing.T) {
	t.Parallel()
	brief := session.Graces{EOF: time.Millisecond, Terminate: time.Millisecond, Output: 5 * time.Millisecond, Sweep: 5 * time.Millisecond}
	for _, method := range []string{"PID", "Exited", "Stdin", "Stdout", "Stderr", "Stdout.Read", "Stderr.Read", "Sweep", "Reap", "Stdin.Close", "CloseOutput"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			p := &plain{exited: make(chan struct{})}
			defer p.CloseOutput()
			for i := range p.out {
				p.out[i], _ = io.Pipe()
			}
			_, p.in = io.Pipe()
			sys := kernel.NewSystem(kernel.Config{})
			k := transport.NewLink(transport.LinkConfig{
				Clock: sys.Clock(), Exec: sys.Executor(), Spawner: sabotages{Spawner: p, method: method}, Graces: brief, Command: &session.Command{Path: "/bin/agent"},
				Router: func(*kernel.Worker, machine.Input) {}, Self: func(machine.ToTransport) {}, Session: func(machine.LifeInput) {},
				Room: func() <-chan struct{} { return nil }, Role: sys.NewRole, Emit: func(session.Event) {}, Idle: func() {},
			})
			k.Launch()
			if method != "Stdout.Read" && method != "Stderr.Read" {
				_ = p.Kill()
			}
			require.NoError(t, kernel.GoExecutor{}.Await(t.Context(), k.Done()))
			require.NoError(t, kernel.GoExecutor{}.Await(t.Context(), p.exited), "it does not run any more")
			s := k.Status()
			if err := errors.Join(s.Err.Err, s.Leftover.Err); method == "Stdin.Close" || method == "CloseOutput" {
				require.ErrorIs(t, s.Leftover.Err, transport.ErrNoReturn)
			} else {
				require.ErrorContains(t, err, "runtime.Goexit")
			}
		})
	}
}
