package differential

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/actors/transport"
	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/backend"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// tap listens to what the agent and the host write to each other.
type tap struct {
	mu    sync.Mutex
	log   []line
	noted chan struct{} // closed and replaced with each new line
}

type line struct {
	agent bool // the agent wrote it; else the host
	text  []byte
}

func newTap() *tap { return &tap{noted: make(chan struct{})} }

func (t *tap) note(agent bool, text []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.log = append(t.log, line{agent, slices.Clone(text)})
	close(t.noted)
	t.noted = make(chan struct{})
}

// said is the log so far.
func (t *tap) said() ([]line, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.log), t.noted
}

// wait waits until enough reports that the log has what is wanted.
func (t *tap) wait(ctx context.Context, enough func([]line) bool) error {
	for {
		log, noted := t.said()
		if enough(log) {
			return nil
		}
		select {
		case <-noted:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// spawner starts processes as the runtime does.
func (t *tap) spawner() session.Spawner {
	seams := kernel.NewSystem(kernel.Config{})
	return &tappedSpawner{t, transport.NewProcessSpawner(transport.ProcessConfig{Clock: seams.Clock(), Exec: seams.Executor(), Rand: seams.Rand()})}
}

type tappedSpawner struct {
	tap *tap
	session.Spawner
}

// Spawn implements [session.Spawner].
func (s *tappedSpawner) Spawn(ctx context.Context, c session.Command) (session.Process, error) {
	p, err := s.Spawner.Spawn(ctx, c)
	if err != nil {
		return nil, err
	}
	return &tappedProcess{
		Process: p,
		in:      &tappedIn{p.Stdin(), cutter{tap: s.tap}},
		out:     &tappedOut{p.Stdout(), cutter{tap: s.tap, agent: true}},
	}, nil
}

type tappedProcess struct {
	session.Process
	in  io.WriteCloser
	out io.Reader
}

func (p *tappedProcess) Stdin() io.WriteCloser { return p.in }
func (p *tappedProcess) Stdout() io.Reader     { return p.out }

type tappedIn struct {
	io.WriteCloser
	cutter
}

func (t *tappedIn) Write(b []byte) (int, error) {
	n, err := t.WriteCloser.Write(b)
	t.add(b[:n])
	return n, err
}

type tappedOut struct {
	io.Reader
	cutter
}

func (t *tappedOut) Read(b []byte) (int, error) {
	n, err := t.Reader.Read(b)
	t.add(b[:n])
	return n, err
}

// cutter cuts what passes into lines.
type cutter struct {
	tap   *tap
	agent bool
	part  []byte
}

func (c *cutter) add(b []byte) {
	c.part = append(c.part, b...)
	for {
		text, rest, ok := bytes.Cut(c.part, []byte{'\n'})
		if !ok {
			return
		}
		c.tap.note(c.agent, text)
		c.part = slices.Clone(rest)
	}
}

// listen is b with its agents, which must be in this process, listened to.
func (t *tap) listen(b session.Backend) session.Backend {
	return &tappedBackend{b.(backend.Backend), t}
}

type tappedBackend struct {
	backend.Backend
	tap *tap
}

// Agent implements [backend.Backend].
func (b *tappedBackend) Agent(in *dialect.Input) (backend.Agent, error) {
	a, err := b.Backend.Agent(in)
	if err != nil {
		return a, err
	}
	if a.NewProgram == nil {
		return a, fmt.Errorf("the agent %s is not made for each session", b.AgentName())
	}
	inner := a.NewProgram
	a.NewProgram = func(s backend.Seams) agent.Program { return &tappedProgram{inner(s), b.tap} }
	return a, nil
}

type tappedProgram struct {
	agent.Program
	tap *tap
}

// Serve implements [agent.Program].
func (p *tappedProgram) Serve(l agent.Launch, port agent.Port) agent.Exit {
	return p.Program.Serve(l, p.port(port))
}

// Open implements [agent.Opener].
func (p *tappedProgram) Open(asked agent.Program, l agent.Launch, port agent.Port) agent.Player {
	o, ok := p.Program.(agent.Opener)
	if !ok || asked != agent.Program(p) {
		return nil
	}
	return o.Open(p.Program, l, p.port(port))
}

func (p *tappedProgram) port(port agent.Port) agent.Port {
	return &tappedPort{port, p.tap, cutter{tap: p.tap, agent: true}}
}

type tappedPort struct {
	agent.Port
	tap *tap
	cutter
}

// Next implements [agent.Port].
func (p *tappedPort) Next(wait time.Duration) ([]byte, error) {
	b, err := p.Port.Next(wait)
	if err == nil {
		p.tap.note(false, b)
	}
	return b, err
}

// Write implements [agent.Port].
func (p *tappedPort) Write(b []byte) error {
	p.add(b)
	return p.Port.Write(b)
}

// Signal implements [agent.Signaller].
func (p *tappedPort) Signal(err error) {
	if s, ok := p.Port.(agent.Signaller); ok {
		s.Signal(err)
	}
}

// Elapsed implements [agent.Elapser].
func (p *tappedPort) Elapsed() time.Duration {
	if e, ok := p.Port.(agent.Elapser); ok {
		return e.Elapsed()
	}
	return 0
}

// Deaf implements [agent.Deafener].
func (p *tappedPort) Deaf() {
	if d, ok := p.Port.(agent.Deafener); ok {
		d.Deaf()
	}
}
