package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime/debug"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// InMemory starts agents that are Go values. Each start serves one conversation of Program
// on its own task.
type InMemory struct {
	Clock   kernel.Clock
	Exec    kernel.Executor
	Program agent.Program
}

// Spawn implements [Spawner].
func (m InMemory) Spawn(_ context.Context, c session.Command) (session.Process, error) {
	if m.Program == nil {
		return nil, &session.StartError{Err: errors.New("the in-memory agent is nil")}
	}
	p := newMemoryProcess(m.Clock, m.Exec)
	launch := agent.Launch{Args: c.Args, Env: c.Env, Dir: c.Dir, Seed: c.Seed}
	p.talk = player{program: m.Program, launch: launch, port: (*memoryPort)(p)}
	m.Exec.Go(p.serve)
	return p, nil
}

// player is a conversation with a program that is not yet begun.
type player struct {
	program agent.Program
	launch  agent.Launch
	port    agent.Port
	begun   agent.Player
}

// Play implements [agent.Player]; a program that needs a separate goroutine is played
// in one call.
func (p *player) Play() (agent.Exit, bool) {
	if o, ok := p.program.(agent.Opener); ok && p.begun == nil {
		p.begun = o.Open(p.program, p.launch, p.port)
	}
	if p.begun == nil {
		return p.program.Serve(p.launch, p.port), true
	}
	return p.begun.Play()
}

// memoryProcess is both ends of an in-memory agent: the host's Process and the
// agent's Port.
type memoryProcess struct {
	clock  kernel.Clock
	exec   kernel.Executor
	born   time.Time
	talk   player
	exited chan struct{}
	status session.ExitStatus // written before exited is closed

	// mu guards what follows. No code of the agent or of the host runs under it.
	mu                    sync.Mutex
	stdin, stdout, stderr pipe
	signals               []error
	dead                  bool
	after                 func() // see AfterExit
	eofSeen               bool
	line                  []byte // of stdin, not yet whole
}

func newMemoryProcess(clock kernel.Clock, exec kernel.Executor) *memoryProcess {
	p := &memoryProcess{clock: clock, exec: exec, born: clock.Now(), exited: make(chan struct{})}
	p.stdin.of, p.stdout.of, p.stderr.of = p, p, p
	return p
}

// serve plays until the agent has ended, or waits for its host: then a task continues
// when there is input for it.
func (p *memoryProcess) serve() {
	exit, ended := agent.Exit{}, false
	defer func() {
		if r := recover(); r != nil {
			exit.Err = &session.PanicError{Value: r, Message: "the agent's conversation", Stack: debug.Stack()}
			p.stderr.push([]byte("the in-memory agent panicked\n"))
		}
		if ended {
			p.end(exit)
		}
	}()
	for !ended {
		exit, ended = agent.Exit{Code: 2}, true // should play not return
		if exit, ended = p.talk.Play(); !ended && (*memoryPort)(p).rests(p.serve) {
			return
		}
	}
}

func (p *memoryProcess) end(exit agent.Exit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		exit = agent.Exit{Signal: "KILL"}
	}
	p.status = session.ExitStatus{Code: exit.Code, Err: exit.Err}
	if exit.Signal != "" {
		p.status = session.ExitStatus{Code: -1, Signal: "SIG" + exit.Signal, Err: exit.Err}
	}
	p.stdin.endRead()
	p.stdout.endWrite()
	p.stderr.endWrite()
	close(p.exited)
	if p.after != nil {
		p.exec.Go(p.after)
		p.after = nil
	}
}

func (p *memoryProcess) PID() int                { return 0 }
func (p *memoryProcess) Stdin() io.WriteCloser   { return &p.stdin }
func (p *memoryProcess) Stdout() io.Reader       { return &p.stdout }
func (p *memoryProcess) Stderr() io.Reader       { return &p.stderr }
func (p *memoryProcess) Exited() <-chan struct{} { return p.exited }

// OnStderr implements announcer.
func (p *memoryProcess) OnStderr(fn func()) { p.stderr.onChange(fn) }

// OnStdout implements announcer.
func (p *memoryProcess) OnStdout(fn func()) bool { return p.stdout.untilReadable(fn) }

// OutputHeld implements holder: the agent's ends are closed when it exits.
func (p *memoryProcess) OutputHeld() (stdout, stderr bool) { return false, false }

// AfterExit implements announcer.
func (p *memoryProcess) AfterExit(fn func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.exited:
		p.exec.Go(fn)
	default:
		p.after = fn
	}
}

func (p *memoryProcess) Signal(s session.Signal) error {
	if s == session.SignalInterrupt {
		p.signal(agent.ErrInterrupted)
	} else {
		p.signal(agent.ErrTerminated)
	}
	return nil
}

func (p *memoryProcess) signal(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.signals = append(p.signals, err)
	p.stdin.fire()
}

func (p *memoryProcess) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
	p.stdin.fire()
	p.stdout.endWrite() // pending writes fail, what was written stays readable
	return nil
}

func (p *memoryProcess) Sweep(context.Context) ([]session.ProcInfo, error) { return nil, nil }

func (p *memoryProcess) CloseOutput() {
	p.stdout.closeRead()
	p.stderr.closeRead()
}

func (p *memoryProcess) Reap() (session.ExitStatus, error) { return p.status, nil }

// memoryPort is the agent's end of a memoryProcess.
type memoryPort memoryProcess

// Next implements [agent.Port].
func (p *memoryPort) Next(wait time.Duration) ([]byte, error) {
	var expired bool
	if wait > 0 {
		t := p.clock.AfterFunc(wait, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			expired = true
			p.stdin.fire()
		})
		defer t.Stop()
	}
	for {
		p.mu.Lock()
		line, err := p.poll()
		if errors.Is(err, errNothing) && (expired || wait == 0) {
			err = agent.ErrWaited
		}
		if !errors.Is(err, errNothing) {
			p.mu.Unlock()
			return line, err
		}
		ch := p.stdin.wait()
		p.mu.Unlock()
		if err := p.exec.Await(context.Background(), ch); err != nil {
			return nil, agent.ErrKilled
		}
	}
}

// rests reports whether stdin has nothing to tell, and again is to run as a task once
// there is something: a line, its end, or a signal.
func (p *memoryPort) rests(again func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.stdin.buf) > p.stdin.readOff || p.stdin.noWriter && !p.eofSeen {
		return false
	}
	p.stdin.next = again
	if p.dead || len(p.signals) > 0 {
		p.stdin.fire()
	}
	return true
}

// pending is the signal that arrived first, or nil; mu is held.
func (p *memoryPort) pending() error {
	if p.dead {
		return agent.ErrKilled
	}
	if len(p.signals) > 0 {
		s := p.signals[0]
		p.signals = p.signals[1:]
		return s
	}
	return nil
}

// errNothing says that the port has nothing to report just now.
var errNothing = errors.New("nothing")

// poll returns a signal, a line or the end of stdin; else errNothing. mu is held.
func (p *memoryPort) poll() ([]byte, error) {
	if err := p.pending(); err != nil {
		return nil, err
	}
	for {
		rest := p.stdin.buf[p.stdin.readOff:]
		if i := bytes.IndexByte(rest, '\n'); i >= 0 {
			line := append(p.line, rest[:i]...)
			p.line = nil
			p.stdin.skip(i + 1)
			return line, nil
		}
		if len(rest) == 0 {
			break
		}
		p.line = append(p.line, rest...)
		p.stdin.skip(len(rest))
	}
	if p.stdin.noWriter && !p.eofSeen {
		if len(p.line) > 0 {
			line := p.line
			p.line = nil
			return line, nil
		}
		p.eofSeen = true
		return nil, io.EOF
	}
	return nil, errNothing
}

// Write implements [agent.Port].
func (p *memoryPort) Write(b []byte) error {
	p.mu.Lock()
	dead := p.dead
	p.mu.Unlock()
	if dead {
		return agent.ErrKilled
	}
	_, err := p.stdout.Write(b)
	return err
}

// Signal implements [agent.Signaller].
func (p *memoryPort) Signal(err error) { (*memoryProcess)(p).signal(err) }

// Stderr implements [agent.Port].
func (p *memoryPort) Stderr(b []byte) { _, _ = p.stderr.Write(b) }

// Elapsed implements [agent.Elapser].
func (p *memoryPort) Elapsed() time.Duration { return p.clock.Now().Sub(p.born) }
