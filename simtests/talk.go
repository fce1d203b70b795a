package simtests

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// talk is what one process and its host said to each other, and what the oracles
// have to say about it.
type talk struct {
	w       *World
	lane    string
	p       *program
	process int // of the client, from 1
	asks    map[string]*asked
	ids     []string

	turns       int             // user messages since the last result
	started     map[string]bool // messages of which the agent has said that it began with them
	interrupted bool            // since the last of them came
	own         time.Time       // when a turn began that the agent started by itself; zero: none runs
}

// asked is a request of the agent's.
type asked struct {
	times     int // it was written
	answers   int
	cancelled bool
	dropped   bool // the agent is not to see the answer
	subtype   string
	event     string // of hook_callback
	agent     string // the sub-agent that it is about; "": none
	message   string // the JSON-RPC id of mcp_message
	tool      string // the id of the tool call that it is about
}

func newTalk(w *World, lane string, p *program) *talk {
	return &talk{w: w, lane: lane, p: p, process: p.process(), asks: make(map[string]*asked), started: make(map[string]bool)}
}

// drop has answers to a request not reach the agent.
func (t *talk) drop(id string) {
	if a := t.asks[id]; a != nil {
		a.dropped = true
	}
}

// label names a line in the trace: what it is, its length and a sum of its bytes.
func label(f protocol.Frame) string {
	sum := uint32(2166136261) // FNV-1a
	for _, c := range f.Raw {
		sum = (sum ^ uint32(c)) * 16777619
	}
	b := append(make([]byte, 0, 64), f.Type...)
	if f.Subtype != "" {
		b = append(append(b, '/'), f.Subtype...)
	}
	b = strconv.AppendInt(append(b, ' '), int64(len(f.Raw)), 10)
	b = append(b, ' ')
	for shift := 28; shift >= 0; shift -= 4 {
		b = append(b, "0123456789abcdef"[sum>>shift&15])
	}
	return string(b)
}

func (t *talk) line(kind, from, to string, line []byte) (protocol.Frame, bool) {
	f, err := protocol.ParseFrame(bytes.TrimSuffix(line, []byte("\n")))
	same := f
	same.Raw = t.w.placeless(f.Raw)
	e := Event{Kind: kind, Lane: to, From: from, What: label(same)}

	if t.w.full {
		e.Text = string(line[:min(len(line), maxText)])
	}
	t.w.note(e)
	return f, err == nil
}

// agent sees a line of the agent's.
func (t *talk) agent(line []byte) {
	f, ok := t.line("agent", t.lane, "host", line)
	if t.p.loop != nil {
		t.p.loop.writes(f, line)
	}
	if !ok {
		return
	}
	switch f.Type {
	case "control_request":
		a := t.asks[f.RequestID]
		if a == nil {
			a = &asked{subtype: f.Subtype}
			t.asks[f.RequestID] = a
			t.ids = append(t.ids, f.RequestID)
		}
		a.times++
		var body struct {
			ToolUseID string `json:"tool_use_id"`
			Agent     string `json:"agent_id"`
			Input     struct {
				Event string `json:"hook_event_name"`
				Agent string `json:"agent_id"`
			} `json:"input"`
			Message struct {
				ID     json.RawMessage `json:"id"`
				Method string          `json:"method"`
				Params struct {
					RequestID json.RawMessage `json:"requestId"`
					Arguments json.RawMessage `json:"arguments"`
					Meta      struct {
						ToolUseID string `json:"claudecode/toolUseId"`
					} `json:"_meta"`
				} `json:"params"`
			} `json:"message"`
		}
		_ = json.Unmarshal(f.Body(), &body) // a body that is not an object names no tool call
		a.tool, a.event = body.ToolUseID, body.Input.Event
		a.agent = cmp.Or(body.Input.Agent, body.Agent)
		a.message = string(body.Message.ID)
		if k, ok := t.about(a); ok {
			t.p.calls.asks(k)
			if t.p.loop != nil {
				t.p.loop.asks(a)
			}
		}
		switch p := &body.Message.Params; {
		case body.Message.Method == "notifications/cancelled":
			t.cancelMCP(string(p.RequestID))
		case body.Message.Method == "tools/call" && t.p.loop != nil:
			t.p.loop.calls(p.Meta.ToolUseID, p.Arguments)
		}
	case "result":
		t.turns = 0 // one result may end several
	case "command_lifecycle":
		t.lifecycle(f.Raw)
	case "system":
		if f.Subtype == "session_state_changed" {
			t.state(f.Raw)
		}
	case "control_cancel_request":
		if a := t.asks[f.RequestID]; a != nil && !a.cancelled {
			a.cancelled = true
			if k, ok := t.about(a); ok {
				if t.p.loop != nil {
					t.p.loop.givesUp(a)
				}
				t.p.calls.givesUp(k, t.w.sched.Now())
			}
		}
	}
}

// about is which callback a request calls about which tool call; false: none.
func (t *talk) about(a *asked) (requestKey, bool) {
	k := requestKey{callKey{t.process, a.tool}, a.event}
	switch a.subtype {
	case "can_use_tool":
		k.callback = "CanUseTool"
	case "hook_callback":
	default:
		return k, false
	}
	return k, true
}

// lifecycle takes note of a message that the agent knows from an earlier process: it says
// completed without started, and no turn begins.
func (t *talk) lifecycle(raw []byte) {
	var says struct {
		UUID  string `json:"command_uuid"`
		State string `json:"state"`
	}
	_ = json.Unmarshal(raw, &says) // a line that is not an object names no message
	switch {
	case says.State == "started":
		t.started[says.UUID] = true
	case says.State == "completed" && !t.started[says.UUID] && t.turns > 0:
		t.turns--
	}
}

// state takes note of a turn that the agent starts by itself.
func (t *talk) state(raw []byte) {
	var says struct {
		State string `json:"state"`
	}
	_ = json.Unmarshal(raw, &says) // a line that is not an object names no state
	switch {
	case says.State == "idle":
		t.own = time.Time{}
	case t.turns == 0 && t.own.IsZero():
		t.own, t.interrupted = t.w.sched.Now(), false
	}
}

// host checks a line of the host for answered-once, sent-once and fail-closed. It
// reports whether to keep the line from the agent.
func (t *talk) host(line []byte) (drop bool) {
	f, ok := t.line("host", "host", t.lane, line)
	switch {
	case ok && f.Type == "user":
		t.p.user(line)
		if t.p.loop != nil {
			t.p.loop.gets(f.UUID(), line)
		}
		t.turns, t.interrupted = t.turns+1, false
		return false
	case ok && f.Type == "control_request" && f.Subtype == "interrupt":
		t.interrupted = true
		if t.p.loop != nil {
			t.p.loop.interrupted()
		}
		return false
	case ok && f.Type == "control_request" && f.Subtype == "set_model" && t.p.loop != nil:
		t.p.loop.own = "" // it is not followed
		return false
	case ok && f.Type == "control_request" && f.Subtype == "rewind_files" && t.p.loop != nil:
		t.p.loop.rewindsFiles(f.RequestID)
		return false
	case !ok || f.Type != "control_response":
		return false
	}
	a := t.asks[f.RequestID]
	if a == nil {
		t.w.Errorf("answered-once: %s got an answer to %q, which it never asked", t.lane, f.RequestID)
		return false
	}
	if a.answers++; a.answers > a.times {
		t.w.Errorf("answered-once: %s got %d answers to its request %q (%s)", t.lane, a.answers, f.RequestID, a.subtype)
	}
	k, ok := t.about(a)
	if !ok {
		return a.dropped
	}
	if t.p.loop != nil {
		t.p.loop.answered(a, f)
	}
	if a.subtype == "can_use_tool" {
		var body struct {
			Behavior string `json:"behavior"`
		}
		_ = json.Unmarshal(said(f), &body) // an answer that is not an object allows nothing
		if body.Behavior == "allow" && !t.p.calls.allowed(k.callKey) {
			t.w.Errorf("fail-closed: %s was allowed the tool call %q, and no callback had allowed it", t.lane, a.tool)
		}
	}
	if a.cancelled { // the agent does not look at the answer
		return a.dropped
	}
	if why := t.p.calls.answered(k, a.subtype == "hook_callback" && denies(f)); why != "" {
		t.w.Errorf("fail-closed: %s may go on with the tool call %q, %s", t.lane, a.tool, why)
	}
	return a.dropped
}

// eof checks the end of stdin for close-in-order: a running turn would continue after
// it, tools included, so it must be interrupted first.
func (t *talk) eof() {
	own := !t.own.IsZero() && t.own.Before(t.w.sched.Now())
	if (t.turns > 0 || own) && !t.interrupted {
		t.w.Errorf("close-in-order: %s got the end of its stdin during a turn that was not interrupted", t.lane)
	}
}

// cancelMCP notes that the agent gives up a JSON-RPC request: it needs no answer then.
func (t *talk) cancelMCP(message string) {
	for _, id := range t.ids {
		if a := t.asks[id]; a.subtype == "mcp_message" && a.message != "" && a.message == message {
			a.cancelled = true
		}
	}
}

// cancelLimit is how long a callback may run after the agent has cancelled its request,
// while no actor waits for its restart.
const cancelLimit = 10 * time.Second

// uncancelled checks a callback that still runs for the cancels that the host has had the
// time to read. Without a reader of the session's messages the host stops reading at its
// limits, and an open gate hides the state that says so.
func (w *World) uncancelled(calls *toolCalls, k requestKey) {
	at, was := calls.cancelled(k)
	w.mu.Lock()
	late := w.sched.Now().Sub(at)
	if w.reached[session.StateAwaitingConsumer.String()] || w.happened(faultJump) || w.happened(faultConsumerStall) || w.happened(faultConsumerLeaves) {
		was = false
	}
	limit := cancelLimit + w.delays
	w.mu.Unlock()
	if was && late > limit {
		w.Errorf("cancelled: the context of %s for %s had not ended %v after the agent had cancelled the request", k.callback, k.tool, late)
	}
}

// happened reports whether a fault of one of the kinds has happened; mu is held.
func (w *World) happened(kinds ...faultKind) bool {
	return slices.ContainsFunc(w.faults, func(a *applied) bool { return a.fired > 0 && slices.Contains(kinds, a.kind) })
}

// said is what an answer says; nil if it is an error.
func said(f protocol.Frame) json.RawMessage {
	r, err := protocol.DecodeControlResponse(f)
	if err != nil || r.Failed() {
		return nil
	}
	return r.Response
}

// denies reports whether the answer to a hook stops the tool call.
func denies(f protocol.Frame) bool {
	var body struct {
		Decision string `json:"decision"`
		Continue *bool  `json:"continue"`
		Specific struct {
			Decision string `json:"permissionDecision"`
		} `json:"hookSpecificOutput"`
	}
	_ = json.Unmarshal(said(f), &body) // an answer that is not an object denies nothing
	return body.Decision == "block" || body.Continue != nil && !*body.Continue || body.Specific.Decision == "deny"
}

// ended looks at what was left open. An agent that ended well, after the end of its
// stdin, had every answer.
func (t *talk) ended(well bool) {
	if !well {
		return
	}
	for _, id := range t.ids {
		if a := t.asks[id]; a.answers == 0 && !a.cancelled {
			t.w.Errorf("answered-once: %s never got an answer to its request %q (%s)", t.lane, id, a.subtype)
		}
	}
}
