package transcript

import (
	"encoding/json"
	"fmt"

	"github.com/agent-troupe/troupe/protocol"
)

// Message is one message of a session, as the vendor's SDK shows it. Its JSON is that of
// the vendor's SessionMessage.
type Message struct {
	Type            string          `json:"type"` // user, assistant or system
	UUID            string          `json:"uuid"`
	SessionID       string          `json:"session_id"`         // of the line, which can name another session than the file
	Message         json.RawMessage `json:"message,omitempty"`  // role and content as in the line; nil for system messages
	ParentToolUseID *string         `json:"parent_tool_use_id"` // of a subagent: the call that started it
	ParentAgentID   *string         `json:"parent_agent_id"`    // of a subagent that a subagent started
	Timestamp       string          `json:"timestamp,omitempty"`

	CompactSummary        bool             `json:"isCompactSummary,omitempty"` // the summary after a compaction
	Meta                  bool             `json:"is_meta,omitempty"`          // the agent added the text
	QueuedCommand         bool             `json:"isQueuedCommand,omitempty"`  // a message that was sent while the agent worked
	LocalCommand          bool             `json:"isCompletedLocalCommand,omitempty"`
	InterruptedByShutdown bool             `json:"interruptedByShutdown,omitempty"`
	Origin                json.RawMessage  `json:"origin,omitempty"`           // of a task's notification and similar; nil: the user
	ToolResultMeta        []ToolResultMeta `json:"tool_result_meta,omitempty"` // of a tool call that was denied

	// Qoder only.
	ToolUseResult   json.RawMessage `json:"tool_use_result,omitempty"`
	APIError        bool            `json:"isApiErrorMessage,omitempty"`
	Subtype         string          `json:"subtype,omitempty"` // of system messages
	CompactMetadata json.RawMessage `json:"compact_metadata,omitempty"`

	// Line is the line of the file that the message comes from.
	Line *Line `json:"-"`
}

// ToolResultMeta says why a tool did not run.
type ToolResultMeta struct {
	ID               string `json:"id"`
	NonExecutionKind string `json:"non_execution_kind"`
}

// Content decodes the blocks of the message. A message that is a bare string has one
// *protocol.TextBlock, a system message none.
func (m *Message) Content() (protocol.Content, error) {
	if m.Message == nil {
		return nil, nil
	}
	var body struct {
		Content protocol.Content `json:"content"`
	}
	if err := json.Unmarshal(m.Message, &body); err != nil {
		return nil, fmt.Errorf("transcript: the content of message %s cannot be decoded: %w", m.UUID, err)
	}
	return body.Content, nil
}

// Text returns the text blocks of the message, joined by newlines.
func (m *Message) Text() string {
	content, err := m.Content()
	if err != nil {
		return ""
	}
	var out string
	for _, b := range content {
		if t, ok := b.(*protocol.TextBlock); ok {
			if out != "" {
				out += "\n"
			}
			out += t.Text
		}
	}
	return out
}

// message makes the message of a line.
func (t *Transcript) message(l *Line, n *node) *Message {
	m := &Message{
		Type:      l.Type(),
		UUID:      l.UUID(),
		SessionID: l.SessionID(),
		Timestamp: l.Timestamp(),
		Message:   l.head.message,
		Line:      l,
	}
	if t.vendor == Qoder {
		m.addQoder(l)
		return m
	}
	if n.flags.has(isQueued) {
		m.queued(l)
		return m
	}
	m.CompactSummary = n.flags.has(isSummary)
	m.Meta = m.CompactSummary || n.flags.has(isMeta) || isTrue(l.head.hidden)
	m.InterruptedByShutdown = isTrue(l.head.interrupted)
	m.Origin = originOf(l.head.origin)
	m.denied(text(l.head.denial))
	return m
}

// denied adds why the tool of a result did not run.
func (m *Message) denied(kind string) {
	if kind == "" || !isObject(m.Message) {
		return
	}
	content := get(m.Message, "content")
	if !isArray(content) {
		return
	}
	var ids []string
	blocks := elementsOf(content)
	for blocks.next() {
		if isObject(blocks.value) && string(get(blocks.value, "type")) == `"tool_result"` {
			ids = append(ids, text(get(blocks.value, "tool_use_id")))
		}
	}
	if len(ids) == 1 && ids[0] != "" {
		m.ToolResultMeta = []ToolResultMeta{{ids[0], kind}}
	}
}

// queued makes a user message of an attachment.
func (m *Message) queued(l *Line) {
	m.Type, m.QueuedCommand = typeUser, true
	if id := text(get(l.head.attachment, "source_uuid")); id != "" {
		m.UUID = id
	}
	prompt := get(l.head.attachment, "prompt")
	m.Message = json.RawMessage(`{"role":"user","content":` + string(prompt) + `}`)
	m.Meta = isTrue(get(l.head.attachment, "isMeta"))
	m.Origin = originOf(get(l.head.attachment, "origin"))
}

// originOf returns an origin, if it is one.
func originOf(v []byte) json.RawMessage {
	if !isObject(v) || !isString(get(v, "kind")) {
		return nil
	}
	return v
}
