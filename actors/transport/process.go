package transport

import (
	"context"
	"errors"
	"io"
	"strings"
	"syscall"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/osproc"
	"github.com/agent-troupe/troupe/session"
)

// ProcessConfig configures a [NewProcessSpawner].
type ProcessConfig struct {
	Clock       kernel.Clock
	Exec        kernel.Executor
	Rand        kernel.Rand
	KeepProcess func(session.ProcInfo) bool
	TempDir     string
	StateDir    string
	Guard       []string
	// HostSwept is called for each host that died, with its directory, how many agents
	// it had not closed, and what could not be removed.
	HostSwept func(dir string, agents int, err error)
}

// NewProcessSpawner returns a spawner that starts processes of this machine.
func NewProcessSpawner(cfg ProcessConfig) *ProcessSpawner {
	oc := osproc.Config{
		Clock: cfg.Clock, Executor: cfg.Exec, Rand: cfg.Rand,
		TempDir: cfg.TempDir, StateDir: cfg.StateDir, Guard: cfg.Guard,
	}
	if swept := cfg.HostSwept; swept != nil {
		oc.HostSwept = func(r osproc.Remains) { swept(r.Dir, r.Launches, r.Err) }
	}
	if keep := cfg.KeepProcess; keep != nil {
		oc.KeepProcess = func(p osproc.ProcInfo) bool { return keep(procInfo(p)) } // its panics count as false
	}
	return &ProcessSpawner{osproc.NewLauncher(oc)}
}

// ProcessSpawner starts processes of this machine.
type ProcessSpawner struct{ launcher *osproc.Launcher }

// SweepHosts ends what hosts that died have left. The first Spawn does so, too.
func (s *ProcessSpawner) SweepHosts(ctx context.Context) error { return s.launcher.SweepHosts(ctx) }

// Spawn implements [session.Spawner].
func (s *ProcessSpawner) Spawn(ctx context.Context, c session.Command) (session.Process, error) {
	oc := osproc.Command{
		Path: c.Path, Names: c.Names, Interpreter: c.Interpreter,
		Args: c.Args, Dir: c.Dir, Env: c.Env,
	}
	if c.TermOnHostDeath {
		oc.HostDeath = syscall.SIGTERM
	}
	for _, f := range c.Files {
		oc.Files = append(oc.Files, osproc.File{Name: f.Name, Data: f.Content})
	}
	p, err := s.launcher.Start(ctx, oc)
	var start *osproc.StartError
	if errors.As(err, &start) {
		return nil, &session.StartError{Path: start.Path, Searched: start.Searched, Dir: start.Dir, Argv: start.Argv, Err: err}
	}
	if err != nil {
		return nil, err
	}
	return &osProcess{p}, nil
}

// SweepMarker kills the processes with a launch marker, of this or another launcher,
// and returns the survivors.
func (s *ProcessSpawner) SweepMarker(ctx context.Context, marker string) ([]session.ProcInfo, error) {
	left, err := s.launcher.SweepMarker(ctx, marker)
	return procInfos(left), err
}

type osProcess struct{ p *osproc.Process }

func (o *osProcess) PID() int                { return o.p.PID() }
func (o *osProcess) Stdin() io.WriteCloser   { return o.p.Stdin() }
func (o *osProcess) Stdout() io.Reader       { return o.p.Stdout() }
func (o *osProcess) Stderr() io.Reader       { return o.p.Stderr() }
func (o *osProcess) Exited() <-chan struct{} { return o.p.Exited() }
func (o *osProcess) Kill() error             { return o.p.Kill() }

func (o *osProcess) AfterExit(fn func()) { o.p.AfterExit(fn) }
func (o *osProcess) OnStderr(fn func())  { o.p.OnStderr(fn) }

func (o *osProcess) OutputHeld() (stdout, stderr bool) { return o.p.OutputHeld() }

func (o *osProcess) OnStdout(fn func()) bool { return o.p.OnStdout(fn) }

func (o *osProcess) Signal(s session.Signal) error {
	if s == session.SignalInterrupt {
		return o.p.Signal(syscall.SIGINT)
	}
	return o.p.Signal(syscall.SIGTERM)
}

func (o *osProcess) Sweep(ctx context.Context) ([]session.ProcInfo, error) {
	left, err := o.p.Sweep(ctx)
	return procInfos(left), err
}

func procInfos(all []osproc.ProcInfo) []session.ProcInfo {
	infos := make([]session.ProcInfo, len(all))
	for i, p := range all {
		infos[i] = procInfo(p)
	}
	return infos
}

// CloseOutput ends blocked reads. Unread output is lost.
func (o *osProcess) CloseOutput() {
	_ = o.p.Stdout().Close()
	_ = o.p.Stderr().Close()
}

func (o *osProcess) Reap() (session.ExitStatus, error) {
	st, err := o.p.Reap()
	status := session.ExitStatus{Code: st.Code}
	if st.Signal != 0 {
		status.Signal = signalName(st.Signal)
	}
	return status, err
}

func signalName(s syscall.Signal) string {
	switch s {
	case syscall.SIGKILL:
		return "SIGKILL"
	case syscall.SIGTERM:
		return "SIGTERM"
	case syscall.SIGINT:
		return "SIGINT"
	}
	return strings.ToUpper(s.String())
}

func procInfo(p osproc.ProcInfo) session.ProcInfo {
	command := p.Name
	if len(p.Args) > 0 {
		command = p.Args[0]
	}
	return session.ProcInfo{PID: p.PID, Command: command}
}

// announcer is a [session.Process] that needs no goroutine to wait for what may never
// come. Each method but the last is called once; fn runs as a task.
type announcer interface {
	// AfterExit has fn run once Exited is closed.
	AfterExit(fn func())
	// OnStderr has fn run when Stderr can be read from, has ended or is closed.
	OnStderr(fn func())
	// OnStdout is OnStderr for Stdout, for any number of times, one after the
	// other. It reports false when there is nothing to wait for, or nothing can
	// tell; then fn is not run.
	OnStdout(fn func()) bool
}

// holder is a [session.Process] that knows whether anybody still has the other end of an
// output once it has exited. Of one that does not, an output that does not end
// is taken for held: the pump may as well have had no time yet.
type holder interface {
	OutputHeld() (stdout, stderr bool)
}
