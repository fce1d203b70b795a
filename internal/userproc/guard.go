package userproc

import (
	"context"
	"errors"
	"io"
	"runtime/debug"

	"github.com/agent-troupe/troupe/session"
)

// builtin reports whether p is a process of this module, which calls nothing of a user's. Such a process
// offers more than [session.Process] has.
func builtin(p session.Process) bool {
	switch p.(type) {
	case interface{ AfterExit(fn func()) }, interface{ OutputHeld() (stdout, stderr bool) }:
		return true
	}
	return false
}

// Spawn starts a process. A spawner that panics, or returns neither a process nor an error, has failed. The
// methods of the process may panic, see [Guard].
func Spawn(ctx context.Context, s session.Spawner, c session.Command, failed func(error)) (p session.Process, err error) {
	panicked := try("Spawn", func() error { p, err = s.Spawn(ctx, c); return nil })
	switch {
	case panicked != nil:
		return nil, panicked
	case err != nil:
		return nil, err
	case p == nil:
		return nil, errors.New("the spawner returned neither a process nor an error")
	}
	if p, err = Guard(p, failed); err == nil && (p.Stdin() == nil || p.Stdout() == nil) {
		return nil, errors.Join(errors.New("the process has no Stdin or Stdout: each must return a value that is not nil"), p.Kill())
	}
	return p, err
}

// Guard returns p with methods that return a [session.PanicError] where those of p panic, and keeps PID,
// Exited and the pipes, which it asks for once. Pipes may be missing, as those of a process that is adopted. It
// calls failed, if that is not nil, when the caller would not learn it: a read or a write that panicked looks
// like the end of a pipe. A process of this module is returned as it is. If p cannot be used at all, it is
// killed, and the panic is the error.
func Guard(p session.Process, failed func(error)) (_ session.Process, err error) {
	if builtin(p) {
		return p, nil
	}
	if failed == nil {
		failed = func(error) {}
	}
	g, used := &guarded{of: p}, false
	defer func() {
		if !used { // one of its methods failed, or ended the goroutine
			err = errors.Join(err, g.Kill())
		}
	}()
	err = try("Process.PID", func() error { g.pid = p.PID(); return nil })
	if err == nil {
		err = try("Process.Exited", func() error { g.exited = p.Exited(); return nil })
	}
	if err == nil {
		err = try("Process.Stdin", func() error {
			if stdin := p.Stdin(); stdin != nil {
				g.stdin = &pipe{w: stdin, failed: failed}
			}
			return nil
		})
	}
	if err == nil {
		err = try("Process.Stdout", func() error { g.stdout = reads(p.Stdout(), "Process.Stdout", failed); return nil })
	}
	if err == nil {
		err = try("Process.Stderr", func() error { g.stderr = reads(p.Stderr(), "Process.Stderr", failed); return nil })
	}
	if err == nil && g.exited == nil {
		err = errors.New("Exited of the process returns nil, and not a channel that is closed at its end")
	}
	if err != nil {
		return nil, err
	}
	used = true
	return g, nil
}

// try calls f, and returns its panic as an error.
func try(what string, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &session.PanicError{Value: r, Message: what, Stack: debug.Stack()}
		}
	}()
	return f()
}

type guarded struct {
	of     session.Process
	pid    int
	exited <-chan struct{}
	stdin  io.WriteCloser
	stdout io.Reader
	stderr io.Reader
}

// The methods of [session.Process].

func (g *guarded) PID() int                { return g.pid }
func (g *guarded) Exited() <-chan struct{} { return g.exited }
func (g *guarded) Stdin() io.WriteCloser   { return g.stdin }
func (g *guarded) Stdout() io.Reader       { return g.stdout }
func (g *guarded) Stderr() io.Reader       { return g.stderr }

func (g *guarded) Signal(s session.Signal) error {
	return try("Process.Signal", func() error { return g.of.Signal(s) })
}

func (g *guarded) Kill() error { return try("Process.Kill", g.of.Kill) }

func (g *guarded) Sweep(ctx context.Context) (left []session.ProcInfo, err error) {
	err = try("Process.Sweep", func() (err error) { left, err = g.of.Sweep(ctx); return err })
	return left, err
}

// CloseOutput has no error to return: a reader that still waits then ends with its limit of time.
func (g *guarded) CloseOutput() {
	_ = try("Process.CloseOutput", func() error { g.of.CloseOutput(); return nil })
}

func (g *guarded) Reap() (status session.ExitStatus, err error) {
	err = try("Process.Reap", func() (err error) { status, err = g.of.Reap(); return err })
	return status, err
}

// pipe is one end of a process. One goroutine at a time reads or writes.
type pipe struct {
	r      io.Reader
	w      io.WriteCloser
	name   string
	failed func(error)
	broken error // it has panicked, or has not returned
}

// reads is a pipe to read from, if there is one.
func reads(r io.Reader, name string, failed func(error)) io.Reader {
	if r == nil {
		return nil
	}
	return &pipe{r: r, name: name, failed: failed}
}

// errNoReturn is why a pipe is broken whose method has ended the goroutine.
var errNoReturn = errors.New("it ended its goroutine instead of returning (runtime.Goexit does that, and so does FailNow of a test)")

func (p *pipe) call(what string, f func() (int, error)) (n int, err error) {
	if p.broken != nil {
		return 0, p.broken
	}
	p.broken = &session.PanicError{Value: errNoReturn, Message: what}
	defer func() {
		if p.broken != nil {
			p.failed(p.broken)
		}
	}()
	panicked := try(what, func() error { n, err = f(); return nil })
	if p.broken = panicked; panicked != nil {
		return 0, panicked
	}
	return n, err
}

func (p *pipe) Read(b []byte) (int, error) {
	return p.call(p.name+".Read", func() (int, error) { return p.r.Read(b) })
}

func (p *pipe) Write(b []byte) (int, error) {
	return p.call("Process.Stdin.Write", func() (int, error) { return p.w.Write(b) })
}

func (p *pipe) Close() error { return try("Process.Stdin.Close", p.w.Close) }
