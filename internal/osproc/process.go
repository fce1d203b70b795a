package osproc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Signal is a signal as package syscall names them: SIGINT, SIGTERM and SIGKILL
// are there on all systems.
type Signal = syscall.Signal

// WritePipe is the host's end of a process's input. Close, or a deadline in the
// past, ends a blocked Write.
type WritePipe interface {
	io.WriteCloser
	SetWriteDeadline(t time.Time) error
}

// ReadPipe is the host's end of one of a process's outputs. Close, or a
// deadline in the past, ends a blocked Read.
type ReadPipe interface {
	io.ReadCloser
	SetReadDeadline(t time.Time) error
}

// ExitStatus says how the leader ended.
type ExitStatus struct {
	Code       int    // exit code; -1 when a signal ended it
	Signal     Signal // 0 unless a signal ended it
	CoreDumped bool
}

func (s ExitStatus) String() string {
	if s.Signal == 0 {
		return fmt.Sprintf("exit status %d", s.Code)
	}
	core := ""
	if s.CoreDumped {
		core = " (core dumped)"
	}
	return fmt.Sprintf("signal: %v%s", s.Signal, core)
}

// ProcInfo describes a process that a sweep met.
type ProcInfo struct {
	PID   int
	PPID  int
	Group int
	Name  string   // the short name the kernel keeps
	Args  []string // the first 4 KiB of its arguments, not masked; empty where they cannot be read
}

func (i ProcInfo) String() string { return fmt.Sprintf("%d (%s)", i.PID, i.Name) }

// Process is a started agent process: the leader of its own process group. Its methods
// are safe for concurrent use.
type Process struct {
	launcher *Launcher
	marker   string
	carries  []string // the names of all markers that it is started with
	entries  []entry  // in the directories of the host
	stdin    *os.File
	stdout   output
	stderr   output
	pid      int
	exited   chan struct{}

	mu     sync.Mutex
	leader leader // what the system needs to know of the leader
	reaped bool
	status ExitStatus
	err    error
	after  func() // see AfterExit
	left   bool   // the last sweep could not kill all

	guarded bool // it holds the launcher's guard
}

// entry is a directory of one launch, or a file that is only its name.
type entry struct {
	in     *HostDir
	path   string
	record bool // it is such a file
}

// PID is the leader's process id.
func (p *Process) PID() int { return p.pid }

// Group is the process group's id.
func (p *Process) Group() int { return p.pid }

// Marker is the name of the environment variable that marks the launch. Kept
// in a journal, it lets a later host sweep with [Launcher.SweepMarker].
func (p *Process) Marker() string { return p.marker }

// Stdin is the pipe to the process. A write after its exit fails with EPIPE.
func (p *Process) Stdin() WritePipe { return p.stdin }

// Stdout is the pipe from the process. Output from before the exit can be read until
// Reap. It ends when the last holder of the other end is gone, which may be a
// descendant.
func (p *Process) Stdout() ReadPipe { return &p.stdout }

// Stderr is like Stdout.
func (p *Process) Stderr() ReadPipe { return &p.stderr }

// OutputHeld reports of which outputs a process, whichever it is, still has the
// other end.
func (p *Process) OutputHeld() (stdout, stderr bool) { return p.stdout.held(), p.stderr.held() }

// OnStdout has fn run as a task of the executor, once, when there is something
// to read from Stdout, or that has ended or is closed. Until then it costs no
// goroutine. It reports false, and never runs fn, where nothing can tell of
// output: elsewhere than on Linux. It may be called again once fn was run.
func (p *Process) OnStdout(fn func()) bool { return p.stdout.watch(&p.launcher.exits, fn) }

// OnStderr is OnStdout for Stderr, but fn runs at once where nothing can tell.
func (p *Process) OnStderr(fn func()) {
	if !p.stderr.watch(&p.launcher.exits, fn) {
		p.launcher.cfg.Executor.Go(fn)
	}
}

// Exited is closed when the leader has exited. It is not collected yet, so the
// group can still be signalled.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// AfterExit has fn run as a task of the executor once Exited is closed, which
// costs no goroutine until then. It may be called once.
func (p *Process) AfterExit(fn func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.exited:
		p.launcher.cfg.Executor.Go(fn)
	default:
		p.after = fn
	}
}

// exit notes that the leader has exited.
func (p *Process) exit() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.exited)
	if p.after != nil {
		p.launcher.cfg.Executor.Go(p.after)
		p.after = nil
	}
}

// Signal sends sig to the whole group. It returns ErrExited, and signals no process,
// once the leader was reaped. A group with only the exited leader is not an error.
func (p *Process) Signal(sig Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return ErrExited
	}
	return p.leader.signalGroup(p.pid, sig)
}

// Kill sends SIGKILL to the whole group. The kernel does so at one instant: a
// member that forks meanwhile takes its child along.
func (p *Process) Kill() error { return p.Signal(syscall.SIGKILL) }

// Sweep kills the group and everything else that carries the launch marker, and waits
// until it is gone: two scans in a row must find nothing. Sweeps that run at the same
// time share their scans. It returns the survivors, with an error that matches
// ErrSurvivors, when they do not die for 5 s (30 s in all, if it forks faster than it
// can be killed), or the context's error when that ends first. Processes that
// KeepProcess spares are neither killed nor returned. The leader, if it lived, is
// killed but not reaped. Sweep may be called at any time, before and after Reap too.
func (p *Process) Sweep(ctx context.Context) ([]ProcInfo, error) {
	left, err := p.launcher.sweeper.sweep(ctx, p.marker, p)
	p.mu.Lock()
	p.left = err != nil
	p.mu.Unlock()
	return left, err
}

// Reap collects the leader and releases everything that the process held: pipes,
// descriptors, temporary files. Unread output is lost, so drain first. It kills the
// rest of the group before the leader's number becomes free. It does not wait: before
// Exited is closed it returns ErrRunning. A second call returns what the first
// returned.
func (p *Process) Reap() (ExitStatus, error) {
	select {
	case <-p.exited:
	default:
		return ExitStatus{}, ErrRunning
	}
	p.stdout.unwatchAll() // before mu: the watcher calls exit
	p.stderr.unwatchAll()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return p.status, p.err
	}
	_ = p.leader.signalGroup(p.pid, syscall.SIGKILL)
	p.status, p.err = p.leader.collect(p.pid)
	p.reaped = true
	p.err = errors.Join(p.err, p.release())
	p.launcher.reaped(p)
	return p.status, p.err
}

// release closes and removes what the process holds.
func (p *Process) release() error {
	p.leader.close()
	if p.stdin != nil {
		_ = p.stdin.Close() // the user may have closed it already
	}
	_ = p.stdout.Close()
	_ = p.stderr.Close()
	var problems []error
	for _, e := range p.entries {
		end := e.in.Remove
		if e.record {
			end = e.in.End
		}
		problems = append(problems, end(e.path, e.in == p.launcher.state && p.left))
	}
	p.entries = nil
	if p.guarded {
		p.guarded = false
		p.launcher.guard.drop()
	}
	return errors.Join(problems...)
}

// holdingGroup calls fn unless the leader was reaped: while fn runs, the
// group's number belongs to this process.
func (p *Process) holdingGroup(fn func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		fn()
	}
}

func isMarker(name string) bool {
	return strings.HasPrefix(name, markerPrefix) && len(name) > len(markerPrefix) && !strings.Contains(name, "=")
}
