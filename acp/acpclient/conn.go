package acpclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/acp"
	"github.com/agent-troupe/troupe/agent/backend"
	dialect "github.com/agent-troupe/troupe/dialect/acp"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// conn translates between a host and an agent. Its methods wait for nothing. It is not for
// concurrent use.
type conn struct {
	setup           dialect.Setup
	seams           backend.Seams
	toHost, toAgent func([]byte)

	last    int64 // id of the last request to the agent
	calls   map[acp.ID]call
	initID  string // request id of the host's initialize; "": none came, or it is answered
	id      acp.SessionID
	opened  bool // the host's initialize was answered with a session
	loading bool // the agent sends the history of the session that it loads
	agent   acp.InitializeResponse
	modes   *acp.SessionModeState
	config  []acp.SessionConfigOption

	turns []*turn // not ended; the first one runs
	shown shown
	asks  []*ask // open permission requests, oldest first
}

// call is a request to the agent that is not answered yet.
type call struct {
	method string
	done   func(acp.Message)
}

func newConn(setup dialect.Setup, seams backend.Seams, toHost, toAgent func([]byte)) *conn {
	if seams.Emit == nil {
		seams.Emit = func(session.Event) {}
	}
	return &conn{setup: setup, seams: seams, toHost: toHost, toAgent: toAgent, calls: map[acp.ID]call{}}
}

// cutLine cuts the first line off b.
func cutLine(b []byte) (line, rest []byte, whole bool) { return bytes.Cut(b, []byte("\n")) }

// uuid returns a new id.
func (c *conn) uuid() string { return kernel.NewUUID(c.seams.Rand) }

// warn reports something that the user should know.
func (c *conn) warn(format string, args ...any) {
	c.seams.Emit(&session.WarningIssued{Problem: fmt.Sprintf(format, args...)})
}

// write writes a line to the host.
func (c *conn) write(v any) {
	line, err := protocol.Marshal(v)
	if err != nil { // a raw part of the agent's that is not JSON; ParseMessage has checked it
		c.warn("a message of the agent cannot be written: %v", err)
		return
	}
	c.toHost(append(line, '\n'))
}

// send writes a message to the agent.
func (c *conn) send(v any) {
	line, err := json.Marshal(v)
	if err != nil {
		c.warn("a message to the agent cannot be written: %v", err)
		return
	}
	c.toAgent(append(line, '\n'))
}

// call makes a request; done gets the answer, unless the agent ends before.
func (c *conn) call(method string, params any, done func(acp.Message)) {
	c.last++
	id := acp.NumberID(c.last)
	c.calls[id] = call{method, done}
	c.send(struct {
		JSONRPC string `json:"jsonrpc"`
		ID      acp.ID `json:"id"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{"2.0", id, method, params})
}

func (c *conn) notify(method string, params any) {
	c.send(struct {
		JSONRPC string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{"2.0", method, params})
}

// answer answers a request of the agent.
func (c *conn) answer(id acp.ID, result any) {
	c.send(struct {
		JSONRPC string `json:"jsonrpc"`
		ID      acp.ID `json:"id"`
		Result  any    `json:"result"`
	}{"2.0", id, result})
}

func (c *conn) refuse(id acp.ID, problem *acp.Error) {
	c.send(struct {
		JSONRPC string     `json:"jsonrpc"`
		ID      acp.ID     `json:"id"`
		Error   *acp.Error `json:"error"`
	}{"2.0", id, problem})
}

// fromAgent handles a line of the agent's.
func (c *conn) fromAgent(line protocol.Line, ceiling int) {
	if line.Oversize > 0 {
		c.tooLong(line, ceiling)
		return
	}
	m, problem := acp.ParseMessage(line.Data)
	switch {
	case problem != nil && problem.Code == acp.CodeParseError:
		c.toHost(append(slices.Clip(line.Data), '\n')) // the session reports lines that are not JSON
	case problem != nil:
		c.write(other{Type: "acp_unknown", SessionID: c.id, UUID: c.uuid(), Line: line.Data})
	case m.Method != "" && m.ID != nil:
		c.request(*m.ID, m)
	case m.Method != "":
		c.notification(m)
	default:
		c.answered(*m.ID, m)
	}
}

// other is a message without a counterpart in the protocol of sessions. Exactly one of Update,
// Params and Line is set.
type other struct {
	Type      string          `json:"type"`
	SessionID acp.SessionID   `json:"session_id"`
	UUID      string          `json:"uuid"`
	Update    json.RawMessage `json:"update,omitempty"`
	Method    string          `json:"method,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Line      json.RawMessage `json:"line,omitempty"`
}

// answered hands an answer to its call. A second answer to the same request has no
// call.
func (c *conn) answered(id acp.ID, m acp.Message) {
	call, ok := c.calls[id]
	if !ok {
		c.warn("the agent answered request %s a second time, or one that was never made; the answer was ignored", id)
		return
	}
	delete(c.calls, id)
	call.done(m)
}

// tooLong handles a line that was skipped: what waits for it fails.
func (c *conn) tooLong(line protocol.Line, ceiling int) {
	c.seams.Emit(&session.OversizeLine{Length: line.Oversize, Ceiling: ceiling, Head: string(line.Head)})
	problem := &acp.Error{Code: acp.CodeInvalidRequest, Message: fmt.Sprintf("the line of %d bytes is longer than MaxLine (%d) and was skipped", line.Oversize, ceiling)}
	m := acp.ParseHead(line.Head)
	switch {
	case m.Method != "" && m.ID != nil:
		c.refuse(*m.ID, problem)
	case m.Method != "":
	case m.ID != nil:
		c.answered(*m.ID, acp.Message{ID: m.ID, Error: problem})
	default: // it may have been the answer to any call
		open := slices.SortedFunc(maps.Keys(c.calls), func(a, b acp.ID) int { return strings.Compare(a.String(), b.String()) })
		for _, id := range open {
			c.answered(id, acp.Message{ID: &id, Error: problem})
		}
	}
}

// request handles a request of the agent.
func (c *conn) request(id acp.ID, m acp.Message) {
	if m.Method != acp.MethodSessionRequestPermission {
		c.refuse(id, &acp.Error{Code: acp.CodeMethodNotFound, Message: m.Method + " is not offered by this client"})
		return
	}
	var r acp.RequestPermissionRequest
	if err := acp.Decode(m.Method, m.Params, &r); err != nil {
		c.refuse(id, problemOf(err))
		return
	}
	if r.SessionID != c.id || !c.opened {
		c.refuse(id, &acp.Error{Code: acp.CodeInvalidParams, Message: "the session is not open here"})
		return
	}
	c.permission(id, &r)
}

func problemOf(err error) *acp.Error {
	if e, ok := errors.AsType[*acp.Error](err); ok {
		return e
	}
	return &acp.Error{Code: acp.CodeInternalError, Message: err.Error()}
}

// notification handles a notification of the agent.
func (c *conn) notification(m acp.Message) {
	switch m.Method {
	case acp.MethodSessionUpdate:
		var n struct {
			SessionID acp.SessionID   `json:"sessionId"`
			Update    json.RawMessage `json:"update"`
		}
		if json.Unmarshal(m.Params, &n) == nil && n.SessionID == c.id && len(n.Update) > 0 {
			c.update(n.Update)
			return
		}
	case acp.MethodCancelRequest:
		var n acp.CancelRequestNotification
		if acp.Decode(m.Method, m.Params, &n) == nil {
			c.withdraw(n.RequestID)
		}
		return
	}
	c.write(other{Type: "acp_notification", SessionID: c.id, UUID: c.uuid(), Method: m.Method, Params: m.Params})
}
