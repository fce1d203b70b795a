package simtests

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// Recording keeps what the sessions of some options and their agents write to each
// other. It is safe for concurrent use, but record one session at a time: the frames of
// all are in one list.
type Recording struct {
	options sdk.Options
	dialect agent.Dialect

	mu      sync.Mutex
	c       Cassette
	secrets []string
}

// Record returns a recording of the sessions that are opened with its Options. Those are
// o, with Backend or Spawner wrapped: o needs a Backend. An agent in memory can be
// recorded as well as a process. With a Spawner a policy does not follow symbolic links
// unless its Resolve is set.
//
// Frames are redacted before they are kept: secrets (values of environment variables
// and of JSON keys whose names tell, such as API_KEY or authorization; env and headers
// of MCP servers; what looks like a token; e-mail addresses), and the agent's working
// directory, home, temporary directory, user and host name. Give further secrets that may
// occur. The environment is not recorded. Read a cassette before you commit it.
func Record(o *sdk.Options, secrets ...string) *Recording {
	if o == nil {
		o = &sdk.Options{}
	}
	r := &Recording{options: *o, dialect: agent.Claude, secrets: secrets}
	if o.Backend != nil && o.Backend.AgentName() == string(agent.Qoder) {
		r.dialect = agent.Qoder
	}
	program, inMemory := o.Backend.(agent.Program)
	if !inMemory {
		r.options.Spawner = &recordingSpawner{r, o.Spawner}
		return r
	}
	if p, ok := program.(interface{ AgentDialect() agent.Dialect }); ok && p.AgentDialect() != "" {
		r.dialect = p.AgentDialect()
	}
	r.options.Backend = &recordingProgram{r, program}
	return r
}

// Options are those to open the session with.
func (r *Recording) Options() *sdk.Options {
	o := r.options
	return &o
}

// Cassette returns what was recorded so far. Close the session before: an agent that
// runs has no exit yet.
func (r *Recording) Cassette() *Cassette {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &Cassette{dialect: r.dialect}
	for _, life := range r.c.lives {
		c.lives = append(c.lives, slices.Clone(life))
	}
	return c
}

// life is one process while it is recorded.
type life struct {
	r      *Recording
	i      int
	hide   *redactor
	in     lines
	out    lines
	closed bool
}

func (r *Recording) start(args, env []string, dir string) *life {
	l := &life{r: r, hide: newRedactor(env, dir, r.secrets)}
	hidden := make([]string, len(args))
	for i, a := range args {
		hidden[i] = l.hide.text(a)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	l.i = len(r.c.lives)
	r.c.lives = append(r.c.lives, []entry{{Start: hidden}})
	return l
}

func (l *life) add(e entry) {
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	l.r.c.lives[l.i] = append(l.r.c.lives[l.i], e)
}

func (l *life) host(line []byte) {
	if json.Valid(line) {
		l.add(entry{Host: l.hide.json(line)})
	}
}

func (l *life) agent(line []byte) {
	if json.Valid(line) {
		l.add(entry{Agent: l.hide.json(line)})
		return
	}
	l.add(entry{Text: l.hide.text(string(line))})
}

// eof notes, once, that stdin was closed.
func (l *life) eof() {
	l.r.mu.Lock()
	closed := l.closed
	l.closed = true
	l.r.mu.Unlock()
	if !closed {
		l.add(entry{EOF: true})
	}
}

func (l *life) exit(code int, signal string) {
	l.add(entry{Exit: &exitEntry{code, strings.TrimPrefix(signal, "SIG")}})
}

// lines makes lines of what is written in pieces.
type lines struct{ rest []byte }

func (l *lines) feed(p []byte, line func([]byte)) {
	l.rest = append(l.rest, p...)
	for {
		one, rest, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole {
			return
		}
		if one = bytes.TrimSuffix(one, []byte("\r")); len(one) > 0 {
			line(one)
		}
		l.rest = slices.Clone(rest)
	}
}

// recordingSpawner starts processes by another spawner; nil is that of production.
type recordingSpawner struct {
	r    *Recording
	next session.Spawner
}

// Spawn implements [session.Spawner].
func (s *recordingSpawner) Spawn(ctx context.Context, c session.Command) (session.Process, error) {
	next := s.next
	if next == nil {
		next = sdk.SpawnThrough(func(c *session.Command) ([]string, func(context.Context) error, error) { return c.Argv(), nil, nil })
	}
	p, err := next.Spawn(ctx, c)
	if err != nil {
		return nil, err
	}
	return &recordedProcess{Process: p, l: s.r.start(c.Args, c.Env, c.Dir)}, nil
}

type recordedProcess struct {
	session.Process
	l *life
}

// Stdin implements [session.Process].
func (p *recordedProcess) Stdin() io.WriteCloser { return &recordedStdin{p.Process.Stdin(), p.l} }

// Stdout implements [session.Process].
func (p *recordedProcess) Stdout() io.Reader { return &recordedStdout{p.Process.Stdout(), p.l} }

// Reap implements [session.Process].
func (p *recordedProcess) Reap() (session.ExitStatus, error) {
	st, err := p.Process.Reap()
	p.l.exit(max(st.Code, 0), st.Signal)
	return st, err
}

type recordedStdin struct {
	io.WriteCloser
	l *life
}

// Write records first: the agent may have answered before the write returns.
func (s *recordedStdin) Write(b []byte) (int, error) {
	s.l.in.feed(b, s.l.host)
	return s.WriteCloser.Write(b)
}

func (s *recordedStdin) Close() error {
	s.l.eof()
	return s.WriteCloser.Close()
}

type recordedStdout struct {
	io.Reader
	l *life
}

func (s *recordedStdout) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b)
	s.l.out.feed(b[:n], s.l.agent)
	return n, err
}

// recordingProgram is an agent in memory.
type recordingProgram struct {
	r *Recording
	agent.Program
}

// AgentDialect says whose CLI the agent speaks like.
func (p *recordingProgram) AgentDialect() agent.Dialect { return p.r.dialect }

// Serve implements [agent.Program].
func (p *recordingProgram) Serve(l agent.Launch, port agent.Port) agent.Exit {
	rec := p.r.start(l.Args, l.Env, l.Dir)
	var recorded agent.Port = &recordedPort{port, rec}
	if e, ok := port.(agent.Elapser); ok {
		recorded = &elapsingPort{&recordedPort{port, rec}, e}
	}
	x := p.Program.Serve(l, recorded)
	rec.exit(x.Code, x.Signal)
	return x
}

type elapsingPort struct {
	*recordedPort
	agent.Elapser
}

type recordedPort struct {
	agent.Port
	l *life
}

// Next implements [agent.Port].
func (p *recordedPort) Next(wait time.Duration) ([]byte, error) {
	line, err := p.Port.Next(wait)
	switch {
	case err == nil:
		p.l.host(line)
	case errors.Is(err, io.EOF):
		p.l.eof()
	}
	return line, err
}

// Write implements [agent.Port].
func (p *recordedPort) Write(b []byte) error {
	p.l.out.feed(b, p.l.agent)
	return p.Port.Write(b)
}

// Deaf implements [agent.Deafener].
func (p *recordedPort) Deaf() {
	if d, ok := p.Port.(agent.Deafener); ok {
		d.Deaf()
	}
}

func getwd(dir string) string {
	if dir == "" {
		dir, _ = os.Getwd() // "": nothing is to be hidden
	}
	return dir
}
