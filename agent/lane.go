package agent

import (
	"errors"
	"maps"
	"time"
)

// Lane is one thread of the conversation: the main agent's or a sub-agent's. Call its
// methods on the strand that it runs on.
type Lane struct {
	e     *engine
	s     *Strand
	scope *scope
	turn  *Turn // nil in a background task

	parent      string // tool_use id of the call a sub-agent answers; "" on the main lane
	agentID     string
	agentType   string
	description string
	background  bool
	task        *Task      // of a sub-agent
	own         *sidechain // of a real model's sub-agent

	message   string // id of the API message that is open
	index     int    // of its next block
	lastText  string
	openTools []*call
	deferred  *call
	halted    bool
	live      *ModelMessage // the open message of a real model
	stopped   bool          // a message of a real model has ended
	lastStop  string        // why the last one has; "": it did not say
}

// Strand returns the strand that the lane runs on.
func (l *Lane) Strand() *Strand { return l.s }

// On returns the lane for use on another strand, such as that of a running tool.
func (l *Lane) On(s *Strand) *Lane {
	on := *l
	on.s, on.scope, on.message, on.openTools = s, s.scope, "", nil
	return &on
}

// Sleep waits for d. The engine answers the host meanwhile.
func (l *Lane) Sleep(d time.Duration) error { return l.s.Sleep(d) }

// System writes a system message.
func (l *Lane) System(subtype string, o Object) { l.e.system(subtype, o) }

// Emit writes a message of the session. It adds uuid and session id.
func (l *Lane) Emit(o Object) { l.e.emit(maps.Clone(o)) }

// Err returns why the lane's turn or task was ended from outside. It is nil while the
// turn or task runs.
func (l *Lane) Err() error { return l.s.scope.cause() }

// Send writes a frame that is not a message of the session, such as a control frame.
func (l *Lane) Send(o Object) error {
	l.e.send(o)
	return l.s.scope.cause()
}

// WaitForHost marks the session as waiting for a person while ask runs.
func (l *Lane) WaitForHost(ask func() error) error {
	l.e.waitsForHost(+1)
	err := ask()
	if err != nil {
		l.e.openAsks--
		return err
	}
	l.e.waitsForHost(-1)
	return nil
}

// Stderr writes a line of diagnostics.
func (l *Lane) Stderr(text string) { l.e.stderr(text) }

// Raw writes b unchanged, after everything that was written before.
func (l *Lane) Raw(b []byte) {
	if l.e.exit == nil {
		l.e.out = append(l.e.out, b...)
	}
}

// Flush writes the buffered output to the port. Without Flush this happens when every
// strand waits, or when the buffer is large.
func (l *Lane) Flush() { l.e.flush() }

// SessionID returns the session's id.
func (l *Lane) SessionID() string { return l.e.session.id }

// UUID returns a new identifier from the seeded source.
func (l *Lane) UUID() string { return l.e.ids.uuid() }

// Elapsed returns the time since the start, as far as the engine knows it.
func (l *Lane) Elapsed() time.Duration { return l.e.now() }

// blockFrame is a content block on its way out: whole, and in deltas.
type blockFrame struct {
	block  Object // as the assistant frame carries it
	start  Object // as content_block_start carries it
	deltas []Object
	pause  time.Duration // between deltas
	more   Object        // members of the assistant frame
	cut    func(sent int) Object
}

// Text writes a block of text.
func (l *Lane) Text(text string) error {
	return l.Stream(Stream{Chunks: Chunks(text, 16)})
}

// Stream is text that is written in pieces.
type Stream struct {
	Chunks []string      // the pieces; each is one delta
	Pause  time.Duration // time between two pieces
}

// Stream writes a block of text piece by piece. If the host asked for partial messages,
// each piece is a stream_event; the whole text follows before content_block_stop, as
// observed on Claude Code 2.1.329. If the host interrupts, the text so far becomes an
// assistant frame that is marked aborted.
func (l *Lane) Stream(st Stream) error {
	f := blockFrame{start: Object{"type": "text", "text": ""}, pause: st.Pause}
	whole := ""
	for _, c := range st.Chunks {
		whole += c
		f.deltas = append(f.deltas, Object{"type": "text_delta", "text": c})
	}
	f.block = Object{"type": "text", "text": whole}
	f.cut = func(sent int) Object {
		part := ""
		for _, c := range st.Chunks[:sent] {
			part += c
		}
		return Object{"type": "text", "text": part}
	}
	if err := l.beginMessage(); err != nil {
		return err
	}
	if l.turn != nil && l.parent == "" && l.e.hooked("MessageDisplay", "") {
		if err := l.displayHook(whole); err != nil {
			return err
		}
	}
	if l.parent != "" && !l.background && !l.e.host.subText {
		return l.s.scope.cause() // a sub-agent's text stays with it
	}
	if err := l.block(f); err != nil {
		return err
	}
	l.lastText = whole
	return nil
}

func (l *Lane) displayHook(text string) error {
	id := l.e.ids.uuid()
	_, err := l.hookOn(l.s, "MessageDisplay", "", id+"-0", Object{
		"turn_id": l.turn.id, "message_id": id, "index": 0, "final": true, "delta": text,
	})
	return err
}

// Thinking writes a block of thinking.
func (l *Lane) Thinking(text string) error {
	if err := l.beginMessage(); err != nil {
		return err
	}
	f := blockFrame{
		block: Object{"type": "thinking", "thinking": text, "signature": "c2ln"},
		start: Object{"type": "thinking", "thinking": "", "signature": ""},
		more:  Object{"thinking_duration_ms": 1, "thinking_display": "updates"},
	}
	for _, c := range Chunks(text, 16) {
		f.deltas = append(f.deltas, Object{"type": "thinking_delta", "thinking": c})
	}
	f.deltas = append(f.deltas, Object{"type": "signature_delta", "signature": "c2ln"})
	if l.e.cfg.Dialect != Qoder && l.parent == "" {
		n := max(len(text)/4, 1)
		l.e.system("thinking_tokens", Object{"estimated_tokens": n, "estimated_tokens_delta": n})
	}
	return l.block(f)
}

// streams reports whether this lane's deltas go to the host: a sub-agent's
// never do, as observed.
func (l *Lane) streams() bool {
	return l.parent == "" && l.e.cfg.Partials.or(l.e.flags.has("include-partial-messages"))
}

func (l *Lane) block(f blockFrame) error {
	if err := l.beginMessage(); err != nil {
		return err
	}
	streams := l.streams()
	if streams {
		l.event(Object{"type": "content_block_start", "index": l.index, "content_block": f.start}, nil)
	}
	for i, d := range f.deltas {
		if i > 0 {
			if err := l.s.Sleep(f.pause); err != nil {
				if errors.Is(err, errAborted) && !errors.Is(err, errTerminated) && f.cut != nil {
					l.assistant(f.cut(i), Object{"aborted": true})
				}
				return err
			}
		}
		if streams {
			l.event(Object{"type": "content_block_delta", "index": l.index, "delta": d}, nil)
		}
	}
	l.assistant(f.block, f.more)
	if streams {
		l.event(Object{"type": "content_block_stop", "index": l.index}, nil)
	}
	l.index++
	return l.s.scope.cause()
}

// beginMessage starts an API message unless one is open: a call of the model,
// which costs and counts.
func (l *Lane) beginMessage() error {
	if err := l.s.scope.cause(); err != nil || l.message != "" {
		return err
	}
	if l.turn != nil {
		l.turn.Open()
	}
	if t := l.turn; t != nil && l.parent == "" {
		if limit := int(l.e.flags.number("max-turns")); limit > 0 && t.calls >= limit {
			return errMaxTurns
		}
		t.calls++
	}
	l.e.calls++
	l.e.spent += l.e.costPerCall()
	l.message, l.index = "msg_"+l.e.ids.hex(12), 0
	if l.streams() {
		if l.e.cfg.Dialect != Qoder {
			l.e.system("status", Object{"status": "requesting"})
		}
		message := l.messageObject(nil)
		message["content"] = []any{}
		l.event(Object{"type": "message_start", "message": message}, Object{"ttft_ms": 1})
	}
	return nil
}

// endMessage closes the API message that is open.
func (l *Lane) endMessage(stopReason string) {
	if l.message == "" {
		return
	}
	if l.streams() {
		l.event(Object{
			"type": "message_delta", "usage": Object{"output_tokens": outputTokens},
			"delta": Object{"stop_reason": stopReason, "stop_sequence": nil},
		}, nil)
		l.event(Object{"type": "message_stop"}, nil)
	}
	l.recordBlocks(stopReason)
	l.message = ""
}

// event writes a stream_event.
func (l *Lane) event(event, more Object) {
	o := Object{
		"type": "stream_event", "event": event, "parent_tool_use_id": nil, "api_message_id": l.message,
	}
	l.e.emit(o.with(more))
}

func (l *Lane) messageObject(block Object) Object {
	o := Object{
		"id": l.message, "type": "message", "role": "assistant", "model": l.e.session.model,
		"content": []any{block}, "stop_reason": nil, "stop_sequence": nil,
		"usage": Object{
			"input_tokens": inputTokens, "output_tokens": 1,
			"cache_read_input_tokens": 0, "cache_creation_input_tokens": 0,
		},
	}
	if l.live != nil {
		o["model"], o["usage"] = l.live.Model, l.live.Usage
		o = o.with(l.live.More)
	}
	if l.e.cfg.Dialect == Qoder {
		o["stop_reason"] = "end_turn"
	} else {
		o["context_management"] = nil
	}
	return o
}

// assistant writes one assistant frame: one content block, the message's final
// stop reason and usage not yet known, as observed.
func (l *Lane) assistant(block, more Object) {
	o := l.frame(block, more)
	if l.e.cfg.At != nil {
		line, err := encode(o)
		if err != nil {
			l.e.fatal("agent: frame cannot be encoded: %v", err)
			return
		}
		l.e.at(MidAssistant, line)
	}
	l.e.send(o)
}

// frame is an assistant frame. The history gets it when its message ends.
func (l *Lane) frame(block, more Object) Object {
	o := Object{"type": "assistant", "message": l.messageObject(block), "parent_tool_use_id": l.parentID()}
	switch {
	case l.live != nil && l.live.RequestID != "":
		o["request_id"] = l.live.RequestID
	case l.live == nil && l.e.cfg.Dialect != Qoder:
		o["request_id"] = "req_" + l.message[len("msg_"):]
	}
	if t := l.turn; t != nil && l.parent == "" && !t.spoke {
		t.spoke = true
		if t.msg.uuid != "" && t.msg.origin == nil {
			o["user_message_uuid"], o["user_message_uuids"] = t.msg.uuid, []string{t.msg.uuid}
		}
		if t.msg.again {
			o["resume_reason"] = "interrupted_turn"
		}
	}
	o = o.with(l.nested()).with(more)
	l.e.stamp(o)
	o["uuid"], o["session_id"] = l.e.ids.uuid(), l.e.session.id
	if th := l.thread(); th != nil && l.e.keeps() {
		th.blocks = append(th.blocks, o)
	}
	return o
}

func (l *Lane) parentID() any {
	if l.parent == "" {
		return nil
	}
	return l.parent
}

// nested is what the frames of a sub-agent carry beside the parent's id.
func (l *Lane) nested() Object {
	if l.parent == "" || l.e.cfg.Dialect == Qoder {
		return nil
	}
	return Object{"agent_id": l.agentID, "subagent_type": l.agentType, "task_description": l.description}
}

// userFrame writes a user message of the agent's own: a tool result, a note.
func (l *Lane) userFrame(o Object) {
	o = o.with(Object{"type": "user", "parent_tool_use_id": l.parentID(), "uuid": l.e.ids.uuid()}).with(l.nested())
	l.e.stamp(o)
	l.recordUser(o)
	if l.parent != "" && (l.own == nil || o["tool_result_meta"] != nil) {
		delete(o, "tool_use_result") // which the host does not get, but of a call that met no gate
	}
	l.e.emit(o)
	if l.turn != nil && l.parent == "" {
		l.turn.users++
	}
}

// UserText writes a user message with text, as the CLI does for its own notes. It adds
// the members of more.
func (l *Lane) UserText(text string, more Object) {
	l.userFrame(Object{
		"message": Object{"role": "user", "content": []any{Object{"type": "text", "text": text}}},
	}.with(more))
}

// Chunks splits text into pieces of n runes.
func Chunks(text string, n int) []string {
	var out []string
	for r := []rune(text); len(r) > 0; {
		k := min(n, len(r))
		out = append(out, string(r[:k]))
		r = r[k:]
	}
	if out == nil {
		out = []string{""}
	}
	return out
}
