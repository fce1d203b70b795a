package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"time"
)

// History stores sessions, so that a later process can resume them. Sessions are files
// like those of Claude Code 2.1.329. A path is relative to the agent's configuration
// directory. The engine calls History from one coroutine at a time. A History may have a
// method Lag() time.Duration: how long after the agent has written a line it stores that.
type History interface {
	// Load returns the content of a file. If the file does not exist, the error wraps
	// fs.ErrNotExist.
	Load(path string) ([]byte, error)
	// Append appends a line, including its newline, and creates the file if necessary.
	Append(path string, line []byte) error
}

// Archive is a [Program] whose sessions the host can read. It is for programs in memory;
// those of processes are files.
type Archive interface {
	// ReadSession returns the file of a session of an agent that was started like that.
	// Without a file the error wraps fs.ErrNotExist. It is called when the agent has ended.
	ReadSession(l Launch, id string) ([]byte, error)
}

// lagger is a [History] that stores a line only some time after the agent has written it to
// stdout, as Claude Code does (up to about 0.12 s, observed on 2.1.329): an agent that is
// killed loses the lines of that time. All lines of a turn are stored before its result.
type lagger interface {
	// Lag is that time for one process, which asks once.
	Lag() time.Duration
}

// resumeEnv asks a resumed agent to run an interrupted turn again by itself.
const resumeEnv = "CLAUDE_CODE_RESUME_INTERRUPTED_TURN"

// interruptedText takes the place of a tool result that never came.
const interruptedText = "[Tool call interrupted: the session ended before this call's result was recorded. It may or may not have taken effect.]"

// memory is what the engine knows of the session's file.
type memory struct {
	leaf     string   // uuid of the last line of the conversation
	prompts  []string // of all lives, in order
	dangling []openUse
	cut      bool // the last turn was not finished
	blocks   []Object
	lag      time.Duration
	unsynced []unsynced // oldest first
}

// openUse is a tool use without a result.
type openUse struct{ id, line string }

// SessionFile is the path of a session's file, for [History].
func SessionFile(dir, id string) string {
	folder := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, dir)
	return "projects/" + folder + "/" + id + ".jsonl"
}

// keeps reports whether the session is kept. A real agent's conversation is its history, and
// the history knows whether it is stored.
func (e *engine) keeps() bool {
	return e.cfg.History != nil && (e.cfg.Live != nil || !e.flags.has("no-session-persistence"))
}

func (e *engine) sessionFile(id string) string {
	return SessionFile(e.session.cwd, id)
}

// entry is what the engine reads of a line it once wrote.
type entry struct {
	Type        string `json:"type"`
	UUID        string `json:"uuid"`
	IsMeta      bool   `json:"isMeta"`
	PromptOwner string `json:"promptSource"`
	Message     struct {
		StopReason string          `json:"stop_reason"`
		Content    json.RawMessage `json:"content"`
	} `json:"message"`
}

// restore reads the session that the arguments resume. One that does not exist
// ends the agent: a bare result, no answer to initialize, as observed.
func (e *engine) restore() {
	id := e.flags.last("resume")
	if id == "" || !e.keeps() {
		return
	}
	file, err := e.cfg.History.Load(e.sessionFile(id))
	if err != nil {
		text := "No conversation found with session ID: " + id
		if !errors.Is(err, fs.ErrNotExist) {
			text = err.Error()
		}
		e.session.id = id
		e.stderr(text)
		e.refuseTurn(text, "")
		e.quit(Exit{Code: 1})
		return
	}
	for line := range bytes.Lines(file) {
		var in entry
		if json.Unmarshal(line, &in) != nil {
			continue // cut off by a death
		}
		e.remember(in)
		if e.session.id != id { // a fork: every line again, under the new id
			e.appendLine(bytes.ReplaceAll(line, []byte(id), []byte(e.session.id)))
		}
	}
	if e.mem.cut && e.launch.Getenv(resumeEnv) == "1" && len(e.mem.prompts) > 0 {
		e.rerun()
	}
}

// remember takes in one line of an earlier life.
func (e *engine) remember(in entry) {
	if in.UUID == "" {
		return
	}
	e.mem.leaf = in.UUID
	switch in.Type {
	case "user":
		if in.PromptOwner != "" || in.IsMeta {
			e.seen[in.UUID], e.remembered[in.UUID] = true, true
			e.mem.cut = true
			if !in.IsMeta {
				e.mem.prompts = append(e.mem.prompts, textOf(in.Message.Content))
			}
			return
		}
		if strings.HasPrefix(textOf(in.Message.Content), "[Request interrupted by user") {
			e.mem.cut = false
		}
	case "assistant":
		e.mem.cut = in.Message.StopReason == "tool_use"
	}
	var blocks []struct {
		Type      string `json:"type"`
		ID        string `json:"id"`
		ToolUseID string `json:"tool_use_id"`
	}
	_ = json.Unmarshal(in.Message.Content, &blocks) // text has no blocks
	for _, b := range blocks {
		switch b.Type {
		case "tool_use":
			e.mem.dangling = append(e.mem.dangling, openUse{b.ID, in.UUID})
		case "tool_result":
			e.mem.close(b.ToolUseID)
		}
	}
}

func (m *memory) close(toolUseID string) {
	for i, open := range m.dangling {
		if open.id == toolUseID {
			m.dangling = append(m.dangling[:i], m.dangling[i+1:]...)
			return
		}
	}
}

// rerun starts the turn that was cut off once more. It waits for nothing, not
// even for initialize, as observed.
func (e *engine) rerun() {
	e.mem.dangling = nil // the model does not see the call any more
	msg := &message{
		uuid: e.ids.uuid(), query: true, again: true,
		prompt:  e.mem.prompts[len(e.mem.prompts)-1],
		content: json.RawMessage(`{"role":"user","content":"Continue from where you left off."}`),
	}
	e.inbox = append(e.inbox, msg)
	e.setStateOnce("running")
	e.startTurn()
}

// record adds a line to the conversation.
func (e *engine) record(o Object) {
	if !e.keeps() {
		return
	}
	o["parentUuid"] = nil
	if e.mem.leaf != "" {
		o["parentUuid"] = e.mem.leaf
	}
	e.mem.leaf, _ = o["uuid"].(string)
	line, err := encode(o.with(Object{
		"isSidechain": false, "userType": "external", "entrypoint": "sdk-ts", "cwd": e.session.cwd,
		"sessionId": e.session.id, "version": e.tr.version, "gitBranch": "HEAD",
		"timestamp": e.timeOfDay(),
	}))
	if err != nil {
		e.fatal("agent: line cannot be kept: %v", err)
		return
	}
	e.appendLine(append(line, '\n'))
}

// epoch is when the engine's time begins.
func epoch() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

func (e *engine) appendLine(line []byte) {
	if e.exit != nil {
		return
	}
	e.mem.unsynced = append(e.mem.unsynced, unsynced{e.now() + e.mem.lag, line})
	e.sync(false)
}

// unsynced is a line that is not stored yet.
type unsynced struct {
	due  time.Duration
	line []byte
}

// sync stores the lines that are due, or all.
func (e *engine) sync(all bool) {
	now := e.now()
	var stored []json.RawMessage
	for len(e.mem.unsynced) > 0 && (all || e.mem.unsynced[0].due <= now) {
		line := e.mem.unsynced[0].line
		e.mem.unsynced = e.mem.unsynced[1:]
		if err := e.cfg.History.Append(e.sessionFile(e.session.id), line); err != nil {
			e.mem.unsynced = nil
			e.fatal("agent: session cannot be kept: %v", err)
		}
		stored = append(stored, bytes.TrimSuffix(line, []byte{'\n'}))
	}
	if len(stored) > 0 && e.flags.has("session-mirror") {
		e.send(Object{"type": "transcript_mirror", "filePath": e.configDir() + "/" + e.sessionFile(e.session.id), "entries": stored})
	}
}

// configDir is where the agent says that its sessions are, also if they are elsewhere.
func (e *engine) configDir() string {
	if dir := e.launch.Getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		return dir
	}
	return e.launch.Getenv("HOME") + "/.claude"
}

// recordPrompt keeps the line a turn answers; before the first one of a life it
// repairs what the last life left open.
func (e *engine) recordPrompt(msg *message) {
	if !e.keeps() {
		return
	}
	if e.mem.cut && !msg.again {
		e.repair()
	}
	e.mem.cut = false
	o := Object{
		"type": "user", "message": msg.content, "promptId": e.session.prompt,
		"permissionMode": e.perms.mode, "uuid": msg.uuid,
	}
	if msg.uuid == "" {
		o["uuid"] = e.ids.uuid()
	}
	switch {
	case msg.again:
		o["isMeta"] = true
	case msg.origin != nil:
		o["message"] = Object{"role": "user", "content": msg.prompt}
		o["isMeta"] = true
	default:
		o["promptSource"], o["turnOrigin"] = "sdk", "sdk"
		e.mem.prompts = append(e.mem.prompts, msg.prompt)
	}
	e.record(o)
}

func (e *engine) repair() {
	for _, open := range e.mem.dangling {
		e.record(Object{
			"type": "user", "uuid": e.ids.uuid(), "toolUseResult": interruptedText, "toolDenialKind": "interrupted",
			"sourceToolAssistantUUID": open.line,
			"message": Object{"role": "user", "content": []any{Object{
				"type": "tool_result", "content": interruptedText, "is_error": true, "tool_use_id": open.id,
			}}},
		})
	}
	e.mem.dangling = nil
	e.record(Object{
		"type": "assistant", "uuid": e.ids.uuid(), "isApiErrorMessage": false, "message": Object{
			"id": e.ids.uuid(), "type": "message", "role": "assistant", "model": "<synthetic>",
			"content":     []any{Object{"type": "text", "text": "No response requested."}},
			"stop_reason": "stop_sequence", "stop_sequence": "", "usage": usage(0),
		},
	})
}

// recordBlocks keeps the blocks of a message that has ended.
func (l *Lane) recordBlocks(stopReason string) {
	if l.parent != "" {
		return
	}
	var stop any // null when the message was cut off
	if stopReason != "" {
		stop = stopReason
	}
	for i, b := range l.e.mem.blocks {
		message, _ := b["message"].(Object)
		l.e.record(Object{
			"type": "assistant", "uuid": b["uuid"], "requestId": b["request_id"], "apiBlockIndex": i,
			"requestedModel": l.e.session.model,
			"message":        message.with(Object{"stop_reason": stop, "usage": l.messageUsage()}),
		})
	}
	l.e.mem.blocks = nil
}

// messageUsage is what the message has used: for a real model, as it said.
func (l *Lane) messageUsage() Object {
	if l.live != nil {
		return l.live.Usage
	}
	return usage(1)
}

// recordUser keeps a user frame of the agent's own.
func (l *Lane) recordUser(o Object) {
	if l.parent != "" || !l.e.keeps() {
		return
	}
	kept := Object{
		"type": "user", "message": o["message"], "uuid": o["uuid"], "promptId": l.e.session.prompt,
	}
	if r, ok := o["tool_use_result"]; ok {
		kept["toolUseResult"] = r
	}
	l.e.record(kept)
}

// History returns all prompts of the session, including those before a resume and the
// prompt of this turn.
func (t *Turn) History() []string { return t.e.mem.prompts }
