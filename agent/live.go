package agent

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"github.com/agent-troupe/troupe/protocol"
)

// Live is what an agent with a real model says in place of what the engine makes up.
type Live struct {
	// Tools are the built-in tools that system/init names; those of --tools replace them.
	Tools []string
	// Used returns the members of the result about what the turn has used, such as usage,
	// modelUsage and duration_api_ms.
	Used func(*Turn) Object
	// Dir is the configuration directory, below which the history's files are; "": that of
	// Claude Code.
	Dir string
	// File is the path of a session's file below it; nil: that of [SessionFile].
	File func(id string) string
	// Cwd is the directory in which the next call begins, which hooks get; nil: always that of the
	// session. It is called on any strand.
	Cwd func() string
	// Answered returns further members of the result of a turn that did not fail; nil: none.
	Answered func(*Turn) Object
	// Effort is how much the model of that name thinks, in the words of requests; nil, and "":
	// it does not say.
	Effort func(model string) string
	// Servers are MCP servers to which the agent connects when it begins; the first turn waits for
	// them. nil: the agent connects to no server.
	Servers []MCPServer
	// KnownTools are the tools of a server, as in tools/list, that the history knows. The model sees
	// them if the server cannot be connected to when the agent begins. nil: none.
	KnownTools func(server string) []json.RawMessage
	// NewServer makes a server of mcp_set_servers. It returns old if that has the same
	// configuration; old is nil if no server has that name. If NewServer is nil, such a server fails.
	NewServer func(name string, c protocol.MCPServerConfig, old MCPServer) (MCPServer, error)
	// Continues is asked with the first message of a session that was resumed, if an earlier life of
	// the agent ended while the model was asked and no call of a tool is open. If it reports true,
	// the message is not part of the conversation: it only has the agent make that request again
	// ([Turn.Continues]). nil: each message is.
	Continues func() bool
}

// ModelMessage is a message of a real model, when it begins.
type ModelMessage struct {
	ID        string // of the message, as the provider says it; required
	RequestID string // of the request to the model; "": unknown
	Model     string // the one that answers
	Usage     Object // in the form of the Messages API, as far as it is known
	More      Object // further members of the message; they replace those of the same name
	// TTFT is how long its first event took; it is said with partial messages.
	TTFT time.Duration
}

// MayCall reports whether another call of the model is within the limits of turns and money,
// and counts it. An error ends the turn: return it.
func (l *Lane) MayCall() error {
	if err := l.MaySpend(); err != nil {
		return err
	}
	if t := l.turn; t != nil {
		t.Open()
		if l.parent == "" {
			t.calls++
		}
	}
	l.e.calls++
	if l.streams() && l.e.cfg.Dialect != Qoder {
		o := Object{"status": "requesting"}
		if t := l.turn; t != nil && l.parent == "" && t.msg.uuid != "" && t.msg.origin == nil {
			o["user_message_uuids"] = []string{t.msg.uuid}
		}
		l.e.system("status", o)
	}
	return nil
}

// MaySpend is [Lane.MayCall] for a call that is not counted, such as that of a summary.
func (l *Lane) MaySpend() error {
	if err := l.MayAsk(); err != nil {
		return err
	}
	if t := l.turn; t != nil && l.parent == "" {
		if limit := int(l.e.flags.number("max-turns")); limit > 0 && t.calls >= limit {
			return errMaxTurns
		}
	}
	return nil
}

// MayAsk is [Lane.MaySpend] for a call that a tool makes, such as one about a web page. The limit
// of turns does not count, since the tools of the last answer run.
func (l *Lane) MayAsk() error {
	if err := l.s.scope.cause(); err != nil {
		return err
	}
	if err := l.stored(false); err != nil {
		return err
	}
	if err := l.MayRepeat(); err != nil {
		return err
	}
	return nil
}

// MayRepeat reports whether there is money for a call that is made again. An error ends the turn:
// return it.
func (l *Lane) MayRepeat() error {
	if l.overBudget() {
		return l.budgetError()
	}
	return nil
}

// Streams reports whether the host wants the events of the model's stream.
func (l *Lane) Streams() bool { return l.streams() }

// OpenMessage begins a message of a real model. Its events follow with Partial and its
// blocks with Block, as they become whole; CloseMessage or DropMessage ends it.
func (l *Lane) OpenMessage(m ModelMessage) {
	l.message, l.index, l.live = m.ID, 0, &m
	if l.own != nil {
		l.lastText = "" // its report is of its last answer
	}
}

// Partial writes an event of the model's stream, one JSON object, if the host wants them.
func (l *Lane) Partial(event json.RawMessage) { l.partial(event, "") }

// Abandon writes the events that end the stream of the open message, which was interrupted
// within block, as Claude Code 2.1.329 does (observed). usage is what is known of it.
func (l *Lane) Abandon(block int, usage Object) {
	if !l.streams() {
		return
	}
	last := Object{
		"type": "message_delta", "context_management": nil, "usage": usage,
		"delta": Object{"container": nil, "stop_details": nil, "stop_reason": nil, "stop_sequence": nil},
	}
	delta, err := encode(last)
	if err != nil {
		return
	}
	l.partial([]byte(`{"type":"content_block_stop","index":`+strconv.Itoa(block)+`}`), "")
	l.partial(delta, "")
	l.partial([]byte(`{"type":"message_stop"}`),
		`,"abandoned_blocks":{"api_message_id":`+strconv.Quote(l.message)+`,"from_block_index":`+strconv.Itoa(block+1)+`}`)
}

// partial writes an event with further members, each behind a comma.
func (l *Lane) partial(event json.RawMessage, more string) {
	e := l.e
	if !l.streams() || e.exit != nil {
		return
	}
	b := append(e.out, `{"type":"stream_event","event":`...)
	b = append(b, event...)
	b = append(b, `,"session_id":`...)
	b = appendText(b, e.session.id)
	b = append(b, `,"parent_tool_use_id":null,"uuid":"`...)
	b = append(b, e.ids.uuid()...)
	b = append(b, `","api_message_id":`...)
	b = appendText(b, l.message)
	if bytes.HasPrefix(event, []byte(`{"type":"message_start"`)) {
		b = l.messageStart(b)
	}
	e.sent(append(append(b, more...), '}', '\n'))
}

// messageStart adds what only the first event of a message says.
func (l *Lane) messageStart(b []byte) []byte {
	b = append(b, `,"ttft_ms":`...)
	b = strconv.AppendInt(b, l.live.TTFT.Milliseconds(), 10)
	if t := l.turn; t != nil && l.parent == "" && !t.streamed && t.msg.uuid != "" && t.msg.origin == nil {
		t.streamed = true
		id := strconv.AppendQuote(nil, t.msg.uuid)
		b = append(append(b, `,"user_message_uuid":`...), id...)
		b = append(append(append(b, `,"user_message_uuids":[`...), id...), ']')
	}
	return b
}

// Block writes an assistant frame with one block of the open message. It adds the members of
// more.
func (l *Lane) Block(block, more Object) {
	l.index++
	if name, ok := block["name"].(string); ok && block["type"] == "tool_use" {
		more = l.e.toolUseMeta(name, block["id"]).with(more)
	}
	if block["type"] != "tool_use" && l.parent != "" && !l.background && !l.e.host.subText {
		_ = l.frame(block, more) // what a sub-agent says stays with it
	} else {
		l.assistant(block, more)
	}
	if text, ok := block["text"].(string); ok && block["type"] == "text" {
		l.lastText = text
	}
}

// CloseMessage ends the open message, with what is known of it now. cost is in US dollars.
func (l *Lane) CloseMessage(stopReason string, usage Object, cost float64) {
	if l.message == "" {
		return
	}
	l.Spend(cost)
	l.used(usage)
	l.live.Usage = usage
	l.stopped, l.lastStop = true, stopReason
	l.recordBlocks(stopReason)
	l.message, l.live = "", nil
}

// ForgetBlocks keeps the blocks of the open message out of the history. The host has seen
// them: it returns the ids of their frames.
func (l *Lane) ForgetBlocks() (frames []string) {
	th := l.thread()
	for _, b := range th.blocks {
		if id, ok := b["uuid"].(string); ok {
			frames = append(frames, id)
		}
	}
	th.blocks = nil
	return frames
}

// Spend adds to what the session has cost, in US dollars, what no message says.
func (l *Lane) Spend(cost float64) {
	l.e.spent += cost
	for own := l.own; own != nil; own = own.up {
		own.spent += cost
	}
}

// DropMessage forgets the open message, of which no block was written.
func (l *Lane) DropMessage() {
	l.thread().blocks = nil
	l.message, l.live = "", nil
}

// Remind adds a text to what the model reads next, behind the results of the last calls. The
// host does not see it. The history gets it as an attachment.
func (l *Lane) Remind(texts ...string) {
	l.Attach("hook_additional_context", Object{"content": texts})
}

// Attach adds an attachment of that kind to the history: what it means is the history's. The
// host does not see it.
func (l *Lane) Attach(kind string, o Object) {
	if l.own == nil {
		l.e.attach(kind, o)
	} else if l.e.keeps() {
		l.record(l.e.attachment(kind, o))
	}
}

func (e *engine) attach(kind string, o Object) {
	if e.cfg.Live != nil && e.keeps() {
		e.record(e.attachment(kind, o))
	}
}

func (e *engine) attachment(kind string, o Object) Object {
	return Object{"type": "attachment", "uuid": e.ids.uuid(), "attachment": o.with(Object{"type": kind})}
}

// RunTools takes calls, whose assistant frames Block has written, through their gates and
// runs those that are allowed, all at once. It is UseTools without its frames.
func (l *Lane) RunTools(calls ...ToolCall) error {
	open := make([]*call, len(calls))
	for i, tc := range calls {
		open[i] = newCall(tc)
		l.openTools = append(l.openTools, open[i])
		l.progress(open[i])
	}
	return l.runTools(open)
}

// Permissions are the session's permission mode and its rules in the vendors' syntax, as
// they are now.
type Permissions struct {
	Mode        string   // the permission mode, such as acceptEdits
	Allow, Deny []string // the rules, in their order; nil: none
	Directories []string // those that answers of the host have added to the options'; nil: none
}

// Permissions returns those of the session.
func (l *Lane) Permissions() Permissions {
	p := Permissions{Mode: l.e.perms.mode, Directories: l.e.perms.dirs}
	for _, r := range l.e.perms.allow {
		p.Allow = append(p.Allow, r.String())
	}
	for _, r := range l.e.perms.disallow {
		p.Deny = append(p.Deny, r.String())
	}
	return p
}

// Verdict is what a real agent's own gate says of a call.
type Verdict struct {
	Allow bool // it runs without a question
	// Deny is what the model reads of a call that a rule denies; "": none does.
	Deny string
	// Tagged says that Deny is a tool's error and no denial of permission.
	Tagged bool
	// Reason is why: mode, rule, subcommandResults, workingDir, safetyCheck; "": nothing to say.
	Reason string
	// Blocked is the path for which the host is asked, with its links followed; "": none.
	Blocked string
	// About explains the question in words; "": nothing to say.
	About string
	// Ask are further members of the request for permission, which replace those of the same
	// name; one that is nil is left out.
	Ask Object
	// Unasked is what the model reads if the call needs permission and there is no one to ask; "":
	// the engine's words.
	Unasked string
	// Unchecked is what the model reads of a call that is refused after the hooks, without a
	// question, since it would need a check that this agent does not have; "": it is not.
	Unchecked string
}

// MCPToolInfo is a tool of an MCP server.
type MCPToolInfo struct {
	Server, Name string          // of the server, and of the tool there
	Tool         json.RawMessage // as in tools/list
}

// MCPTools returns the tools of the host's in-process servers and of the agent's own, in their order.
func (l *Lane) MCPTools() (list []MCPToolInfo) {
	for _, m := range l.e.host.servers {
		for i, name := range m.tools {
			list = append(list, MCPToolInfo{m.name, name, m.described[i]})
		}
	}
	return list
}

// Tools returns the tools that system/init names.
func (l *Lane) Tools() []string { return l.e.tools() }

// Model returns the session's model, as the options and set_model say, or that of the
// sub-agent.
func (l *Lane) Model() string {
	if l.own != nil && l.own.model != "" {
		return l.own.model
	}
	return l.e.session.model
}

// SystemPrompt returns the parts of the host's system prompt, nil if it keeps the agent's
// own, and what it adds.
func (l *Lane) SystemPrompt() (parts []string, add string) {
	if p := l.e.host.prompt; p != nil {
		parts = append([]string{}, p.Parts...)
	}
	return parts, l.e.host.addition
}

// PlanModeInstructions returns the host's instructions for plan mode; "" without instructions.
func (l *Lane) PlanModeInstructions() string { return l.e.host.planMode }

// OutputSchema returns the schema of the structured output that the host wants; nil if it wants text.
func (l *Lane) OutputSchema() json.RawMessage { return l.e.host.output }

// Answer sets the structured output with which the turn ends if it is a success. The turn's last
// one counts.
func (l *Lane) Answer(output json.RawMessage) {
	if l.turn != nil && l.parent == "" {
		l.turn.output = output
	}
}

// Dir returns the session's working directory, and Directories those that were added.
func (l *Lane) Dir() string { return l.e.session.cwd }

// cwd is the directory in which the lane's calls begin.
func (l *Lane) cwd() string {
	switch {
	case l.own != nil && l.own.cwd != nil:
		return l.own.cwd()
	case l.own == nil && l.e.cfg.Live != nil && l.e.cfg.Live.Cwd != nil:
		return l.e.cfg.Live.Cwd()
	}
	return l.e.session.cwd
}

// Directories returns the directories that the options add to the working directory.
func (l *Lane) Directories() []string { return l.e.flags.all("add-dir") }

const stampFormat = "2006-01-02T15:04:05.000Z"

// stamp adds the time of day, if it is known.
func (e *engine) stamp(o Object) {
	if e.cfg.Now != nil {
		o["timestamp"] = e.timeOfDay()
	}
}

func (e *engine) timeOfDay() string {
	now := epoch().Add(e.now())
	if e.cfg.Now != nil {
		now = e.cfg.Now()
	}
	return now.In(time.UTC).Format(stampFormat)
}
