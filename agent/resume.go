package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
)

// entry is what the engine reads of a line it once wrote.
type entry struct {
	Type        string `json:"type"`
	Subtype     string `json:"subtype"`
	UUID        string `json:"uuid"`
	IsMeta      bool   `json:"isMeta"`
	IsSummary   bool   `json:"isCompactSummary"`
	PromptOwner string `json:"promptSource"`
	Message     struct {
		StopReason string          `json:"stop_reason"`
		Content    json.RawMessage `json:"content"`
	} `json:"message"`
	Attachment struct {
		SourceUUID string `json:"source_uuid"`
	} `json:"attachment"`
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
			e.appendLine(e.renamed(line, id))
		}
	}
	if e.mem.cut && e.launch.Getenv(resumeEnv) == "1" && len(e.mem.prompts) > 0 {
		e.rerun()
	}
}

// renamed is a line of the session id in this one. The texts for a real model stay as they are.
func (e *engine) renamed(line []byte, id string) []byte {
	from, to := id, e.session.id
	if e.cfg.Live != nil {
		from, to = `"sessionId":"`+id+`"`, `"sessionId":"`+to+`"`
	}
	return bytes.ReplaceAll(line, []byte(from), []byte(to))
}

// remember takes in one line of an earlier life.
func (e *engine) remember(in entry) {
	if in.UUID == "" || in.Subtype == "compact_boundary" { // which counts with the summary behind it
		return
	}
	e.mem.leaf = in.UUID
	switch in.Type {
	case "attachment":
		if id := in.Attachment.SourceUUID; id != "" { // what the user said while the agent worked
			e.seen[id], e.remembered[id] = true, true
		}
	case "user":
		switch text := textOf(in.Message.Content); {
		case e.cfg.Live == nil:
		case in.IsSummary:
			return // the model is asked what it was asked before
		case in.PromptOwner == "" && isLocal(text):
			e.seen[in.UUID], e.remembered[in.UUID] = true, true
			return
		}
		if in.PromptOwner != "" || in.IsMeta {
			e.seen[in.UUID], e.remembered[in.UUID] = true, true
			e.mem.cut = true
			if !in.IsMeta {
				e.prompted(textOf(in.Message.Content))
			}
			return
		}
		if strings.HasPrefix(textOf(in.Message.Content), "[Request interrupted by user") {
			e.mem.cut = false
		} else if e.cfg.Live != nil {
			e.mem.cut = true // a result, or a note of the agent, that the model has not answered
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
			e.mem.open(b.ID, in.UUID)
		case "tool_result":
			e.mem.close(b.ToolUseID)
		}
	}
}

func (th *thread) close(toolUseID string) {
	for i, open := range th.dangling {
		if open.id == toolUseID {
			th.dangling = append(th.dangling[:i], th.dangling[i+1:]...)
			return
		}
	}
}

// rerun starts the turn that was cut off once more. It waits for nothing, not
// even for initialize, as observed.
func (e *engine) rerun() {
	if e.cfg.Live == nil {
		e.mem.dangling = nil // the model does not see the call any more
	}
	msg := &message{
		uuid: e.ids.uuid(), query: true, again: true,
		prompt:  e.mem.prompts[len(e.mem.prompts)-1],
		content: json.RawMessage(`{"role":"user","content":"Continue from where you left off."}`),
	}
	e.inbox = append(e.inbox, msg)
	e.setStateOnce("running")
	e.startTurn()
}

// continues reports whether a message only has the agent continue the turn that was cut off.
func (e *engine) continues(msg *message) bool {
	live := e.cfg.Live
	return live != nil && live.Continues != nil && e.mem.cut && len(e.mem.dangling) == 0 && msg.query && msg.origin == nil && live.Continues()
}

// answerOpen adds a result for each call without one: without them no provider takes the
// conversation.
func (e *engine) answerOpen() {
	text := interruptedText
	if e.flags.has("resume-session-at") {
		text = missingText
	}
	for _, open := range e.mem.dangling {
		e.record(Object{
			"type": "user", "uuid": e.ids.uuid(), "toolUseResult": text, "toolDenialKind": "interrupted",
			"sourceToolAssistantUUID": open.line,
			"message": Object{"role": "user", "content": []any{Object{
				"type": "tool_result", "content": text, "is_error": true, "tool_use_id": open.id,
			}}},
		})
	}
	e.mem.dangling = nil
}

func (e *engine) repair() {
	e.answerOpen()
	e.record(Object{
		"type": "assistant", "uuid": e.ids.uuid(), "isApiErrorMessage": false, "message": Object{
			"id": e.ids.uuid(), "type": "message", "role": "assistant", "model": "<synthetic>",
			"content":     []any{Object{"type": "text", "text": "No response requested."}},
			"stop_reason": "stop_sequence", "stop_sequence": "", "usage": usage(0),
		},
	})
}
