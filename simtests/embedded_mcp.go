package simtests

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/agent-troupe/troupe/session"
)

// serves starts an MCP server on stdio, which has the tools of the embedded agent's Tools.
func (s *shells) serves(c session.Command) (session.Process, error) {
	m, w := s.mind, s.w
	name := strings.Join(c.Names, " ") + c.Path
	m.alive("starts " + name)
	w.note(Event{Kind: "effect", Lane: w.sched.running(), What: "starts " + name})
	ran := Ran{}
	if hit := w.strike(w.sched.running(), "", faultCommand); hit != nil {
		hit.command(hit.rng, &ran)
	}
	if ran.refused {
		return nil, &session.StartError{Path: name, Err: syscall.EAGAIN}
	}
	p := &shell{m: m, exited: make(chan struct{}), changed: make(chan struct{})}
	p.in = &serverInput{p: p, hangs: ran.hangs}
	if ran.killed {
		p.timer = w.sched.AfterFunc(ran.Takes, func() { p.exits(session.ExitStatus{Code: -1, Signal: "SIGKILL"}) })
	}
	w.mu.Lock()
	m.procs = append(m.procs, p)
	w.mu.Unlock()
	return p, nil
}

// serverInput is the input of an MCP server. Each line is a message.
type serverInput struct {
	p     *shell
	hangs bool // it answers nothing
	rest  []byte
}

// Write implements [io.Writer].
func (i *serverInput) Write(b []byte) (int, error) {
	w := i.p.m.w
	w.mu.Lock()
	gone := i.p.gone
	w.mu.Unlock()
	if gone {
		return 0, syscall.EPIPE
	}
	i.rest = append(i.rest, b...)
	for {
		line, rest, whole := bytes.Cut(i.rest, []byte{'\n'})
		if !whole {
			return len(b), nil
		}
		i.rest = slices.Clone(rest)
		i.take(line)
	}
}

// Close ends the server, as the end of the input does.
func (i *serverInput) Close() error {
	i.p.exits(session.ExitStatus{})
	return nil
}

func (i *serverInput) take(line []byte) {
	var in struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"params"`
	}
	if json.Unmarshal(line, &in) != nil || in.ID == nil || i.hangs {
		return
	}
	m := i.p.m
	ran := Ran{}
	result := any(map[string]any{})
	switch in.Method {
	case "initialize":
		ran.Takes = m.e.ToolsAfter
		result = map[string]any{
			"protocolVersion": "2025-06-18", "capabilities": map[string]any{"tools": map[string]any{}},
			"serverInfo": map[string]any{"name": "simulated", "version": "1"},
		}
	case "tools/list":
		tools := []any{}
		for _, name := range m.e.Tools {
			tools = append(tools, map[string]any{"name": name, "inputSchema": map[string]any{"type": "object"}})
		}
		result = map[string]any{"tools": tools}
	case "tools/call":
		m.calledBy(in.Params.Name, in.Params.Arguments)
		m.w.note(Event{Kind: "effect", Lane: m.w.sched.running(), What: "calls " + in.Params.Name + " " + string(in.Params.Arguments)})
		if m.e.Tool != nil {
			ran = m.e.Tool(in.Params.Name, in.Params.Arguments)
		}
		result = map[string]any{"content": []any{map[string]any{"type": "text", "text": ran.Output}}}
	}
	answer, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": in.ID, "result": result})
	if err != nil {
		m.w.Errorf("an MCP server cannot answer: %v", err)
		return
	}
	m.w.sched.AfterFunc(max(ran.Takes, time.Millisecond), func() {
		if ran.Code != 0 {
			i.p.exits(session.ExitStatus{Code: ran.Code})
			return
		}
		m.w.mu.Lock()
		defer m.w.mu.Unlock()
		if !i.p.gone {
			i.p.out = append(append(i.p.out, answer...), '\n')
			i.p.tell()
		}
	})
}

var _ io.WriteCloser = (*serverInput)(nil)
