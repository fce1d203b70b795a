//go:build conformance

package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/actors/transport"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// wire starts agents as the runtime does, and listens to the pipes.
type wire struct {
	session.Spawner
	edit  func([]byte) []byte // changes what the host writes; nil does not
	deaf  bool                // SIGTERM does not reach the agents
	start time.Time

	mu    sync.Mutex
	log   []spoken
	noted chan struct{} // closed and replaced with each new entry
}

// spoken is a line on a pipe, or something that happened to the process.
type spoken struct {
	at   time.Duration
	who  string // "host", "agent", "process"
	text string
}

// What the log says of the process besides lines.
const (
	stdinClosed = "stdin closed"
	reaped      = "reaped: "
)

func newWire() *wire {
	seams := kernel.NewSystem(kernel.Config{})
	return &wire{start: time.Now(), noted: make(chan struct{}), Spawner: transport.NewProcessSpawner(transport.ProcessConfig{
		Clock: seams.Clock(), Exec: seams.Executor(), Rand: seams.Rand(),
	})}
}

// Spawn implements [session.Spawner].
func (w *wire) Spawn(ctx context.Context, c session.Command) (session.Process, error) {
	p, err := w.Spawner.Spawn(ctx, c)
	if err != nil {
		return nil, err
	}
	w.note("process", started+strings.Join(c.Args, " "))
	return &tapped{
		Process: p, wire: w,
		stdin:  &tapIn{WriteCloser: p.Stdin(), lines: lines{wire: w, who: "host"}},
		stdout: &tapOut{Reader: p.Stdout(), lines: lines{wire: w, who: "agent"}},
	}, nil
}

func (w *wire) note(who, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, spoken{time.Since(w.start), who, text})
	close(w.noted)
	w.noted = make(chan struct{})
}

// await waits until something was said.
func (w *wire) await(ctx context.Context, match func(spoken) bool) error {
	for {
		w.mu.Lock()
		found, noted := slices.ContainsFunc(w.log, match), w.noted
		w.mu.Unlock()
		if found {
			return nil
		}
		select {
		case <-noted:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// said is the log so far.
func (w *wire) said() []spoken {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]spoken(nil), w.log...)
}

// String is the log, a line each, cut to a length that a person reads.
func (w *wire) String() string {
	const most = 1000
	var b strings.Builder
	for _, s := range w.said() {
		if len(s.text) > most {
			s.text = s.text[:most] + "…"
		}
		fmt.Fprintf(&b, "%8.3f %-7s %s\n", s.at.Seconds(), s.who, s.text)
	}
	return b.String()
}

// agentKilled says that a test kills the agent. It is said before the kill: the host may close
// stdin right behind it.
const agentKilled = "killed by the test"

const started = "started: "

// answered checks that the host answered each request of the agent once, before
// it closed stdin, unless the agent took the request back, by a cancel frame or
// by the notification that cancels an MCP call.
func (w *wire) answered(t *testing.T) {
	t.Helper()
	open, answers := map[string]string{}, map[string]int{}
	calls := map[string]string{} // MCP calls: their requests
	dies := false
	for _, s := range w.said() {
		switch {
		case s.who != "process":
		case s.text == agentKilled:
			dies = true
		case strings.HasPrefix(s.text, started):
			dies = false
		case s.text == stdinClosed && !dies:
			assert.Empty(t, open, "requests that were open when stdin was closed")
		}
		if dies { // its requests are void
			clear(open)
		}
		c, ok := s.control()
		switch {
		case !ok:
		case s.who == "agent" && c.Type == protocol.TypeControlRequest:
			open[c.RequestID] = s.text
			m := c.Request.Message
			if id := string(m.ID); id != "" {
				calls[c.Request.ServerName+" "+id] = c.RequestID
			} else if m.Method == "notifications/cancelled" {
				delete(open, calls[c.Request.ServerName+" "+string(m.Params.RequestID)])
			}
		case s.who == "agent" && c.Type == protocol.TypeControlCancel:
			delete(open, c.RequestID)
		case s.who == "host" && c.Type == protocol.TypeControlResponse:
			delete(open, c.Response.RequestID)
			answers[c.Response.RequestID]++
			assert.Equal(t, 1, answers[c.Response.RequestID], "answers to request %s", c.Response.RequestID)
		}
	}
}

// rpcs are the JSON-RPC methods that the agent called.
func (w *wire) rpcs() []string {
	var methods []string
	for _, s := range w.said() {
		if c, ok := s.control(); ok && s.who == "agent" && c.Request.Message.Method != "" {
			methods = append(methods, c.Request.Message.Method)
		}
	}
	return methods
}

// control is the control frame that a line holds, if it holds one.
type control struct {
	Type      string `json:"type"`
	RequestID string `json:"request_id"`
	Request   struct {
		Subtype    string `json:"subtype"`
		ServerName string `json:"server_name"`
		Message    struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				RequestID json.RawMessage `json:"requestId"`
			} `json:"params"`
		} `json:"message"`
	} `json:"request"`
	Response struct {
		Subtype   string          `json:"subtype"`
		RequestID string          `json:"request_id"`
		Response  json.RawMessage `json:"response"`
	} `json:"response"`
}

func (s spoken) control() (c control, ok bool) {
	return c, json.Unmarshal([]byte(s.text), &c) == nil && strings.HasPrefix(c.Type, "control_")
}

// tapped is a process whose pipes are listened to.
type tapped struct {
	session.Process
	wire   *wire
	stdin  io.WriteCloser
	stdout io.Reader
}

func (p *tapped) Stdin() io.WriteCloser { return p.stdin }
func (p *tapped) Stdout() io.Reader     { return p.stdout }

func (p *tapped) Signal(s session.Signal) error {
	p.wire.note("process", s.String())
	if p.wire.deaf && s == session.SignalTerminate {
		return nil
	}
	return p.Process.Signal(s)
}

func (p *tapped) Reap() (session.ExitStatus, error) {
	status, err := p.Process.Reap()
	p.wire.note("process", reaped+status.String())
	return status, err
}

type tapIn struct {
	io.WriteCloser
	lines
	once sync.Once
}

func (t *tapIn) Write(b []byte) (int, error) {
	if t.wire.edit == nil {
		n, err := t.WriteCloser.Write(b)
		t.add(b[:n])
		return n, err
	}
	edited := t.wire.edit(b)
	n, err := t.WriteCloser.Write(edited)
	t.add(edited[:n])
	return len(b), err
}

func (t *tapIn) Close() error {
	t.once.Do(func() { t.wire.note("process", stdinClosed) })
	return t.WriteCloser.Close()
}

type tapOut struct {
	io.Reader
	lines
}

func (t *tapOut) Read(b []byte) (int, error) {
	n, err := t.Reader.Read(b)
	t.add(b[:n])
	return n, err
}

// lines cuts what passes into lines.
type lines struct {
	wire *wire
	who  string
	part []byte
}

func (l *lines) add(b []byte) {
	l.part = append(l.part, b...)
	for {
		line, rest, ok := bytes.Cut(l.part, []byte{'\n'})
		if !ok {
			return
		}
		l.wire.note(l.who, string(line))
		l.part = append([]byte(nil), rest...)
	}
}
