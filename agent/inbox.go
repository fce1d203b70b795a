package agent

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/agent-troupe/troupe/protocol"
)

// message is a user line, or a turn the agent starts by itself.
type message struct {
	uuid    string
	content json.RawMessage // the message member, as the host wrote it
	prompt  string
	query   bool
	started bool // its command_lifecycle has said started
	apart   bool // it was there before the turn that runs: it gets its own
	origin  *Task
	alone   bool // it gets a separate turn
	again   bool // a turn of an earlier life, run once more
}

// line handles one line from the host.
func (e *engine) line(raw []byte) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return
	}
	f, err := protocol.ParseFrame(raw)
	if err != nil || !json.Valid(raw) {
		if e.tr.fatalJunk && !json.Valid(raw) {
			e.fatal("Error parsing streaming input line (type=unknown, %d chars): SyntaxError", len(raw))
		}
		return
	}
	switch f.Type {
	case protocol.TypeControlRequest:
		e.control(f)
	case protocol.TypeControlResponse:
		e.answered(f)
	case protocol.TypeControlCancel, protocol.TypeControlCancelAlias:
		e.host.cancel(f.RequestID)
	case "user":
		e.user(f)
	}
}

// user takes a user line: its own turn when idle, queued behind the one that
// runs, or known already.
func (e *engine) user(f protocol.Frame) {
	var line struct {
		Message     json.RawMessage `json:"message"`
		ShouldQuery *bool           `json:"shouldQuery"`
	}
	var m struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	err := json.Unmarshal(f.Raw, &line)
	if err == nil {
		err = json.Unmarshal(line.Message, &m)
	}
	if err != nil || m.Role != "user" {
		if e.tr.fatalJunk {
			e.fatal("Error: Expected message role 'user', got '%s'", m.Role)
		}
		return
	}
	if e.tr.needsInitialize && !e.host.initialized {
		e.refuseTurn("initialize_required: send initialize first", "initialize_required")
		e.quit(Exit{Code: 1})
		return
	}
	msg := &message{
		uuid: f.UUID(), content: line.Message, prompt: textOf(m.Content),
		query: line.ShouldQuery == nil || *line.ShouldQuery,
	}
	if msg.uuid != "" && e.seen[msg.uuid] {
		e.repeated(msg)
		return
	}
	if msg.uuid != "" {
		e.seen[msg.uuid] = true
	}
	e.enqueue(msg)
}

// repeated is a line the session has had before: it is echoed and not run. One
// that an earlier life of the session had is called completed, as observed.
func (e *engine) repeated(msg *message) {
	if e.remembered[msg.uuid] {
		e.lifecycle(msg, "completed")
	}
	e.replay(msg)
	if e.turn == nil {
		e.setState("idle")
	}
}

// enqueue puts msg at the end of the inbox.
func (e *engine) enqueue(msg *message) {
	idle := e.turn == nil && len(e.inbox) == 0
	e.inbox = append(e.inbox, msg)
	msg.apart = e.turn == nil
	if idle {
		e.setStateOnce("running")
	}
	e.lifecycle(msg, "queued")
	if idle {
		e.begin(msg)
	}
}

// begin announces that msg is being worked on.
func (e *engine) begin(msg *message) {
	if !msg.started {
		msg.started = true
		e.lifecycle(msg, "started")
	}
}

// lifecycle reports the state of a user line that has a uuid, as observed on
// Claude Code 2.1.329.
func (e *engine) lifecycle(msg *message, state string) {
	if msg.uuid == "" || msg.origin != nil {
		return
	}
	e.emit(Object{"type": "command_lifecycle", "command_uuid": msg.uuid, "state": state})
}

// replay echoes a user line, for hosts that started the agent with
// --replay-user-messages.
func (e *engine) replay(msg *message) {
	if !e.flags.has("replay-user-messages") || msg.origin != nil || msg.again {
		return
	}
	o := Object{
		"type": "user", "message": msg.content, "parent_tool_use_id": nil, "isReplay": true,
	}
	if msg.uuid != "" {
		o["uuid"] = msg.uuid
	}
	e.emit(o)
}

// startTurn takes the oldest message.
func (e *engine) startTurn() {
	msg := e.inbox[0]
	e.inbox = slices.Delete(e.inbox, 0, 1)
	for _, later := range e.inbox {
		later.apart = true
	}
	e.begin(msg)
	e.runTurn(msg)
}

// inject hands the lines that came during the turn to it, at a tool boundary.
func (e *engine) inject(t *Turn) {
	kept := e.inbox[:0]
	for _, msg := range e.inbox {
		_, compact := msg.compacts() // which is nothing for the model
		if msg.alone || msg.apart && msg.origin == nil || msg.origin != nil && e.cfg.Live == nil || compact && e.cfg.Live != nil {
			kept = append(kept, msg)
			continue
		}
		e.replay(msg)
		e.begin(msg)
		if msg.origin == nil {
			t.injected = append(t.injected, msg)
		}
		if e.cfg.Live != nil {
			e.recordQueued(msg)
		}
	}
	clear(e.inbox[len(kept):])
	e.inbox = kept
}

// queued returns the uuids of the lines that wait for their turn.
func (e *engine) queued() []string {
	ids := []string{}
	for _, msg := range e.inbox {
		if msg.uuid != "" {
			ids = append(ids, msg.uuid)
		}
	}
	return ids
}

// dropQueued empties the inbox of user lines (those whose uuid is id, or all if
// id is "") and returns the uuids of what it dropped.
func (e *engine) dropQueued(id string) []string {
	dropped := []string{}
	e.inbox = slices.DeleteFunc(e.inbox, func(msg *message) bool {
		if msg.origin != nil || id != "" && msg.uuid != id {
			return false
		}
		if msg.uuid != "" {
			dropped = append(dropped, msg.uuid)
		}
		e.lifecycle(msg, "cancelled")
		return true
	})
	return dropped
}

// setState reports a state of the session, setStateOnce only when it is new.
func (e *engine) setState(state string) {
	e.state = state
	env := e.launch.Getenv
	loud := env("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS") == "1"
	asked := e.tr.stateFrames && (loud || env("CLAUDE_CODE_SDK_READS_SESSION_STATE") == "1")
	if state == "" || !e.cfg.State.or(asked) {
		return
	}
	o := Object{"state": state}
	if !loud {
		o["sdk_host_only"] = true
	}
	e.system("session_state_changed", o)
}

func (e *engine) setStateOnce(state string) {
	if e.state != state {
		e.setState(state)
	}
}

// textOf joins the text of a message's content, which is a string or blocks.
func textOf(content json.RawMessage) string {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return s
	}
	var blocks []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &blocks) != nil {
		return ""
	}
	for _, b := range blocks {
		if b.Type == "text" {
			s += b.Text
		}
	}
	return s
}
