package simtests

import (
	"context"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/agent-troupe/troupe/session"
)

// Ran is what a command does in a world.
type Ran struct {
	Output string
	Code   int           // of its exit
	Takes  time.Duration // until it exits
	// Child says that it leaves a process behind, which has its output open.
	Child bool

	endless time.Duration // it prints Output again and again
	hangs   bool
	killed  bool
	refused bool // it cannot be started
}

// shells start the commands of an agent.
type shells struct{ *mind }

// SweepMarker is that of the runtime's spawner.
func (*shells) SweepMarker(context.Context, string) ([]session.ProcInfo, error) { return nil, nil }

// Spawn implements [session.Spawner].
func (s *shells) Spawn(_ context.Context, c session.Command) (session.Process, error) {
	m, w := s.mind, s.w
	for _, text := range slices.Concat(c.Args, c.Env) {
		w.loops.secret("the environment or the arguments of a command", text)
	}
	if m.e.Tools != nil && c.Path != "/bin/bash" {
		return s.serves(c)
	}
	if m.checks(c.Args) {
		return m.runs(c.Path, m.e.Config.Check.Command, nil)
	}
	command := ""
	u := m.effect(func(u *use) bool {
		if u.command != "" && slices.Contains(c.Args, u.command) {
			command = u.command
			return true
		}
		return false
	}, "runs "+command1(c.Args), "bash\x00"+command1(c.Args))
	w.note(Event{Kind: "effect", Lane: w.sched.running(), What: "runs " + command})
	w.mu.Lock()
	w.effects = append(w.effects, command)
	w.mu.Unlock()
	m.moment()
	return m.runs(c.Path, command, u)
}

// runs starts a command, which a call has started; u is nil for a check.
func (m *mind) runs(path, command string, u *use) (session.Process, error) {
	w, ran := m.w, Ran{}
	if m.e.Run != nil {
		ran = m.e.Run(command)
	}
	if hit := w.strike(w.sched.running(), "", faultCommand); hit != nil {
		hit.command(hit.rng, &ran)
	}
	if ran.refused {
		return nil, &session.StartError{Path: path, Err: syscall.EAGAIN}
	}
	p := &shell{m: m, use: u, check: u == nil, child: ran.Child, exited: make(chan struct{}), changed: make(chan struct{})}
	p.out = []byte(ran.Output)
	if ran.endless == 0 {
		p.output = ran.Output
	}
	switch {
	case ran.endless > 0:
		p.prints(ran)
	case ran.hangs:
	case ran.killed:
		p.timer = w.sched.AfterFunc(ran.Takes, func() { p.exits(session.ExitStatus{Code: -1, Signal: "SIGKILL"}) })
	default:
		p.timer = w.sched.AfterFunc(ran.Takes, func() { p.exits(session.ExitStatus{Code: ran.Code}) })
	}
	w.mu.Lock()
	m.procs = append(m.procs, p)
	w.mu.Unlock()
	return p, nil
}

// command1 is the command among the arguments: the longest one, for messages.
func command1(args []string) string {
	longest := ""
	for _, a := range args {
		if !strings.ContainsAny(a, "/$") && len(a) > len(longest) {
			longest = a
		}
	}
	return longest
}

// running are the commands that run, with those in the background or without; mu is held.
func (m *mind) running(background bool) []string {
	return m.commands(func(p *shell) bool {
		return background || p.in == nil && (p.use == nil || !p.use.background && !m.aside[p.use.agent])
	})
}

// beside are those that run in the foreground of the same conversation; mu is held.
func (m *mind) beside(agent string) []string {
	return m.commands(func(p *shell) bool {
		return p.in == nil && (p.use == nil || !p.use.background && p.use.agent == agent)
	})
}

func (m *mind) commands(of func(*shell) bool) (all []string) {
	for _, p := range m.procs {
		if p.there() && of(p) {
			name := "a command"
			if p.use != nil {
				name = p.use.command
			}
			all = append(all, name)
		}
	}
	return all
}

// shell is a process. The world's mutex guards what changes.
type shell struct {
	m      *mind
	use    *use
	in     io.WriteCloser // of an MCP server; nil for a command
	check  bool           // that of Config.Check
	exited chan struct{}

	timer   session.Timer
	gone    bool // the process itself
	child   bool // a process is there that it has left
	closed  bool // its output has no reader any more
	status  session.ExitStatus
	output  string        // that it prints in all; "": unknown
	out     []byte        // that was not read
	changed chan struct{} // closed when there is more to read, or no more will come
}

// there reports whether a process of the command is there; mu is held.
func (p *shell) there() bool { return !p.gone || p.child }

// tell wakes the reader; mu is held.
func (p *shell) tell() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// prints prints the output again and again.
func (p *shell) prints(r Ran) {
	p.timer = p.m.w.sched.AfterFunc(r.endless, func() {
		w := p.m.w
		w.mu.Lock()
		over := p.gone
		if !over {
			p.out = append(p.out, r.Output+"again and again\n"...)
			p.tell()
		}
		w.mu.Unlock()
		if !over {
			p.prints(r)
		}
	})
}

func (p *shell) exits(s session.ExitStatus) {
	p.m.w.mu.Lock()
	defer p.m.w.mu.Unlock()
	if p.gone {
		return
	}
	p.gone, p.status = true, s
	if p.check {
		p.m.checking.failed = s.Code != 0
	}
	if p.timer != nil {
		p.timer.Stop()
	}
	close(p.exited)
	p.tell()
}

func (p *shell) PID() int { return 0 }
func (p *shell) Stdin() io.WriteCloser {
	if p.in != nil {
		return p.in
	}
	return stdinOf{}
}
func (p *shell) Stdout() io.Reader       { return p }
func (p *shell) Stderr() io.Reader       { return nil }
func (p *shell) Exited() <-chan struct{} { return p.exited }

// Signal implements [session.Process].
func (p *shell) Signal(session.Signal) error {
	p.exits(session.ExitStatus{Code: -1, Signal: "SIGTERM"})
	return nil
}

// Kill implements [session.Process]. The child is in the same group.
func (p *shell) Kill() error {
	p.exits(session.ExitStatus{Code: -1, Signal: "SIGKILL"})
	_, err := p.Sweep(context.Background())
	return err
}

// Sweep implements [session.Process].
func (p *shell) Sweep(context.Context) ([]session.ProcInfo, error) {
	p.m.w.mu.Lock()
	defer p.m.w.mu.Unlock()
	if p.child {
		p.child = false
		p.tell()
	}
	return nil, nil
}

// CloseOutput implements [session.Process].
func (p *shell) CloseOutput() {
	p.m.w.mu.Lock()
	defer p.m.w.mu.Unlock()
	p.closed = true
	p.tell()
}

// Reap implements [session.Process].
func (p *shell) Reap() (session.ExitStatus, error) {
	p.m.w.mu.Lock()
	defer p.m.w.mu.Unlock()
	return p.status, nil
}

// Read reads the output.
func (p *shell) Read(b []byte) (int, error) {
	w := p.m.w
	for {
		w.mu.Lock()
		n := copy(b, p.out)
		p.out = p.out[n:]
		over, changed := !p.there() || p.closed, p.changed
		w.mu.Unlock()
		switch {
		case n > 0:
			return n, nil
		case over:
			return 0, io.EOF
		}
		if err := w.loops.executor.Await(context.Background(), changed); err != nil {
			return 0, err
		}
	}
}

// stdinOf is the input of a command that reads nothing.
type stdinOf struct{}

func (stdinOf) Write(b []byte) (int, error) { return len(b), nil }
func (stdinOf) Close() error                { return nil }

// commandFault is a fault of a command.
func commandFault(name string, p float64, f func(rng *rand.Rand, r *Ran)) (fault Fault) {
	return Fault{name: name, kind: faultCommand, p: p, command: f}
}
