package acpclient

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/agent-troupe/troupe/agent/backend"
	dialect "github.com/agent-troupe/troupe/dialect/acp"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// The bounds of what is queued, in bytes. The host's messages wait for the agent at
// maxToAgent; the agent's wait for the host at maxToHost, and for the agent itself to read the
// answers that it gets at maxAnswers.
const (
	maxToAgent = 1 << 20
	maxToHost  = 1 << 20
	maxAnswers = 8 << 20
)

// Spawner starts agents of the protocol. It is safe for concurrent use if Process is.
type Spawner struct {
	Process session.Spawner // starts the agent's process. Required
	Seams   backend.Seams
	MaxLine int // the longest line of the agent that is read, in bytes; 0: protocol.DefaultMaxLine
}

// Spawn implements [session.Spawner]. c must have the file [dialect.SetupFile], which the process
// does not get.
func (s *Spawner) Spawn(ctx context.Context, c session.Command) (session.Process, error) {
	at := slices.IndexFunc(c.Files, func(f session.File) bool { return f.Name == dialect.SetupFile })
	if at < 0 {
		return nil, &session.StartError{Err: fmt.Errorf("the command has no %s, which dialect/acp writes", dialect.SetupFile)}
	}
	var setup dialect.Setup
	if err := json.Unmarshal(c.Files[at].Content, &setup); err != nil {
		return nil, &session.StartError{Err: fmt.Errorf("%s: %w", dialect.SetupFile, err)}
	}
	c.Files = slices.Delete(slices.Clone(c.Files), at, at+1)
	inner, err := s.Process.Spawn(ctx, c)
	if err != nil {
		return nil, err
	}
	p := &process{Process: inner, maxLine: s.MaxLine, toHost: &buffer{exec: s.Seams.Exec}, toAgent: &buffer{exec: s.Seams.Exec}}
	p.conn = newConn(setup, s.Seams, p.toHost.add, p.toAgent.add)
	s.Seams.Exec.Go(p.read)
	s.Seams.Exec.Go(p.write)
	return p, nil
}

// process is an agent's process, whose stdin and stdout speak the protocol of sessions.
type process struct {
	session.Process // the agent's own
	maxLine         int

	toHost, toAgent *buffer

	mu   sync.Mutex // guards conn; the translation waits for nothing
	conn *conn

	partial []byte // of a line of the host's; the host writes from one goroutine at a time
}

// Stdin implements [session.Process].
func (p *process) Stdin() io.WriteCloser { return (*stdin)(p) }

// Stdout implements [session.Process].
func (p *process) Stdout() io.Reader { return p.toHost }

// CloseOutput implements [session.Process].
func (p *process) CloseOutput() {
	p.toHost.abandon()
	p.Process.CloseOutput()
}

// OutputHeld says whether another process has the agent's outputs, if the spawner below knows.
func (p *process) OutputHeld() (stdout, stderr bool) {
	if h, ok := p.Process.(interface{ OutputHeld() (stdout, stderr bool) }); ok {
		return h.OutputHeld()
	}
	return true, true
}

// stdin is where the host writes to.
type stdin process

// Write translates the lines in b. It waits while the agent does not read.
func (s *stdin) Write(b []byte) (int, error) {
	s.partial = append(s.partial, b...)
	for {
		line, rest, whole := cutLine(s.partial)
		if !whole {
			break
		}
		s.mu.Lock()
		s.conn.fromHost(line)
		s.mu.Unlock()
		s.partial = rest
	}
	if len(s.partial) == 0 {
		s.partial = nil
	}
	s.toAgent.waitBelow(maxToAgent)
	if ended, broken := s.toAgent.state(); ended || broken {
		return 0, io.ErrClosedPipe
	}
	return len(b), nil
}

// Close closes the agent's stdin once it has read what was written; the second time at once.
func (s *stdin) Close() error {
	if ended, _ := s.toAgent.state(); ended {
		return s.Process.Stdin().Close()
	}
	s.toAgent.end()
	return nil
}

// write is the task that writes to the agent.
func (p *process) write() {
	for {
		data, ok := p.toAgent.take()
		if !ok {
			_ = p.Process.Stdin().Close() // the process's end says what there is to say
			return
		}
		if _, err := p.Process.Stdin().Write(data); err != nil {
			p.toAgent.abandon()
		}
	}
}

// read is the task that reads from the agent. It ends with the agent's stdout.
func (p *process) read() {
	defer func() {
		p.toHost.end()
		p.toAgent.abandon()
	}()
	lines := protocol.NewSplitter(p.maxLine)
	out := p.Process.Stdout()
	for {
		n, err := out.Read(lines.Buffer())
		lines.Commit(n)
		for line, ok := lines.Next(); ok; line, ok = lines.Next() {
			p.take(line)
		}
		if err != nil {
			if line, ok := lines.Finish(); ok {
				p.take(line)
			}
			return
		}
	}
}

// take translates a line of the agent's, and waits while the host, or the agent itself, does
// not read.
func (p *process) take(line protocol.Line) {
	p.mu.Lock()
	p.conn.fromAgent(line, p.ceiling())
	p.mu.Unlock()
	p.toHost.waitBelow(maxToHost)
	p.toAgent.waitBelow(maxAnswers)
}

func (p *process) ceiling() int {
	if p.maxLine > 0 {
		return p.maxLine
	}
	return protocol.DefaultMaxLine
}
