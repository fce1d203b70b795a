package agent

import (
	"encoding/json"
	"maps"
	"slices"
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

// missingText does so where the history was cut behind the call (observed on Claude Code
// 2.1.329).
const missingText = "[Tool result missing due to internal error]"

// memory is what the engine knows of the session's file.
type memory struct {
	thread
	prompts  []string // of all lives, in order; of a real agent, whose history has them, the last
	cut      bool     // the last turn was not finished
	lag      time.Duration
	unsynced []unsynced // oldest first

	failed error             // why lines are not stored; nil: all are
	lost   []json.RawMessage // they, once the host has a copy of each line
}

// thread is a conversation as its file has it.
type thread struct {
	leaf     string // uuid of the last line
	dangling []openUse
	blocks   []Object // of the message that is open
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
	if live := e.cfg.Live; live != nil && live.File != nil {
		return live.File(id)
	}
	return SessionFile(e.session.cwd, id)
}

// record adds a line to the conversation.
func (e *engine) record(o Object) {
	if !e.keeps() {
		return
	}
	if line := e.lineOf(&e.mem.thread, o, Object{"isSidechain": false}); line != nil {
		e.appendLine(line)
	}
}

// lineOf is the next line of a conversation, with more members; nil if it cannot be encoded.
func (e *engine) lineOf(th *thread, o, more Object) []byte {
	o["parentUuid"] = nil
	if th.leaf != "" {
		o["parentUuid"] = th.leaf
	}
	th.leaf, _ = o["uuid"].(string)
	kept := make(Object, len(o)+len(more)+7)
	maps.Copy(kept, o)
	kept["userType"], kept["entrypoint"], kept["cwd"] = "external", "sdk-ts", e.session.cwd
	kept["sessionId"], kept["version"], kept["gitBranch"] = e.session.id, e.tr.version, "HEAD"
	kept["timestamp"] = e.timeOfDay()
	maps.Copy(kept, more)
	line, err := encode(kept)
	if err != nil {
		e.fatal("agent: line cannot be kept: %v", err)
		return nil
	}
	return append(line, '\n')
}

// epoch is when the engine's time begins.
func epoch() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// configDir is where the agent says that its sessions are, also if they are elsewhere.
func (e *engine) configDir() string {
	if live := e.cfg.Live; live != nil && live.Dir != "" {
		return live.Dir
	}
	if dir := e.launch.Getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		return dir
	}
	return e.launch.Getenv("HOME") + "/.claude"
}

// recordPrompt keeps the line a turn answers, behind what it mends.
func (e *engine) recordPrompt(msg *message) {
	if !e.keeps() {
		return
	}
	e.mend(msg)
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
		e.prompted(msg.prompt)
	}
	e.record(o)
}

// mend repairs what the turn before, or the last life, has left open.
func (e *engine) mend(msg *message) {
	if !e.keeps() {
		return
	}
	if e.mem.cut && !msg.again {
		e.repair()
	} else if e.cfg.Live != nil {
		e.answerOpen() // a limit has ended the turn before, or it is run once more
	}
	e.mem.cut = false
}

// prompted keeps the text of a prompt.
func (e *engine) prompted(text string) {
	if e.cfg.Live != nil {
		e.mem.prompts = nil
	}
	e.mem.prompts = append(e.mem.prompts, text)
}

// recordQueued keeps a line that came while the agent worked.
func (e *engine) recordQueued(msg *message) {
	if msg.origin != nil { // a background task has ended
		e.attach("queued_command", Object{"prompt": msg.prompt, "commandMode": "task-notification"})
		return
	}
	var m struct {
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(msg.content, &m) != nil {
		return // the engine has read it
	}
	e.prompted(msg.prompt)
	e.attach("queued_command", Object{"prompt": m.Content, "commandMode": "prompt", "source_uuid": msg.uuid})
}

// recordBlocks keeps the blocks of a message that has ended.
func (l *Lane) recordBlocks(stopReason string) {
	th := l.thread()
	if th == nil {
		return
	}
	var stop any // null when the message was cut off
	if stopReason != "" {
		stop = stopReason
	}
	for i, b := range th.blocks {
		message, _ := b["message"].(Object)
		o := Object{
			"type": "assistant", "uuid": b["uuid"], "requestId": b["request_id"], "apiBlockIndex": i,
			"requestedModel": l.Model(),
			"message":        message.with(Object{"stop_reason": stop, "usage": l.messageUsage()}),
		}
		if l.live != nil {
			th.noteCalls(b, message)
			if failed, _ := b["is_api_error_message"].(bool); failed {
				o["isApiErrorMessage"], o["error"] = true, b["error"]
			}
		}
		l.record(o)
	}
	th.blocks = nil
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
	th := l.thread()
	if th == nil || !l.e.keeps() {
		return
	}
	kept := Object{
		"type": "user", "message": o["message"], "uuid": o["uuid"], "promptId": l.e.session.prompt,
	}
	if r, ok := o["tool_use_result"]; ok {
		kept["toolUseResult"] = r
	}
	if l.e.cfg.Live != nil {
		if source := th.answered(o); source != "" {
			kept["sourceToolAssistantUUID"] = source
		}
	}
	l.record(kept)
}

// noteCalls notes the calls of an assistant frame, which have no result yet.
func (th *thread) noteCalls(frame, message Object) {
	uuid, _ := frame["uuid"].(string)
	blocks, _ := message["content"].([]any)
	for _, b := range blocks {
		if block, ok := b.(Object); ok && block["type"] == "tool_use" {
			id, _ := block["id"].(string)
			th.open(id, uuid)
		}
	}
}

// open notes a call without a result. The second of an id is dropped: it gets no result.
func (th *thread) open(id, line string) {
	if !slices.ContainsFunc(th.dangling, func(o openUse) bool { return o.id == id }) {
		th.dangling = append(th.dangling, openUse{id, line})
	}
}

// answered takes the calls that a frame has results of from those without, and returns the
// uuid of the line with the call; "": there is no result in it.
func (th *thread) answered(frame Object) (source string) {
	message, _ := frame["message"].(Object)
	blocks, _ := message["content"].([]any)
	for _, b := range blocks {
		block, ok := b.(Object)
		if !ok || block["type"] != "tool_result" {
			continue
		}
		id, _ := block["tool_use_id"].(string)
		for _, open := range th.dangling {
			if open.id == id {
				source = open.line
			}
		}
		th.close(id)
	}
	return source
}

// History returns all prompts of the session, including those before a resume and the
// prompt of this turn. Of an agent with [Config].Live it is only the last of them.
func (t *Turn) History() []string { return t.e.mem.prompts }
