package acpclient

import (
	"encoding/json"
	"strings"

	"github.com/agent-troupe/troupe/acp"
)

// maxText is how much text makes one message, in bytes. The rest is another message.
const maxText = 8 << 20

// shown is what the host was given of the agent's work.
type shown struct {
	kind    string // of the block that grows: text, thinking; "": none does
	id      string // the message that it is of
	named   bool   // the agent has named the message
	text    strings.Builder
	tools   []*tool         // that have no result, oldest first
	closed  map[string]bool // ids of calls of this turn that have a result
	earlier map[string]bool // and of the turn before
	cost    float64         // of the session, in US dollars
}

// update handles a session/update. An update without a counterpart goes to the host
// unchanged.
func (c *conn) update(raw json.RawMessage) {
	if c.loading {
		return // the history, which the host has seen
	}
	var u acp.SessionUpdate
	if json.Unmarshal(raw, &u) != nil {
		u = acp.SessionUpdate{}
	}
	switch {
	case u.AgentMessageChunk != nil:
		c.chunk("text", u.AgentMessageChunk)
	case u.AgentThoughtChunk != nil:
		c.chunk("thinking", u.AgentThoughtChunk)
	case u.ToolCall != nil:
		t := u.ToolCall
		delete(c.shown.earlier, string(t.ToolCallID)) // another call with an old id
		c.tool(&acp.ToolCallUpdate{
			ToolCallID: t.ToolCallID, Title: t.Title, Name: t.Name, Kind: t.Kind, Status: t.Status, Content: t.Content,
			Locations: t.Locations, RawInput: t.RawInput, RawOutput: t.RawOutput, Meta: t.Meta,
		}, raw)
	case u.ToolCallUpdate != nil:
		c.tool(u.ToolCallUpdate, raw)
	default:
		c.note(&u)
		c.unknown(raw)
	}
}

// note keeps what an update says about the session.
func (c *conn) note(u *acp.SessionUpdate) {
	switch {
	case u.CurrentModeUpdate != nil && c.modes != nil:
		c.modes.CurrentModeID = u.CurrentModeUpdate.CurrentModeID
	case u.ConfigOptionUpdate != nil:
		c.config = u.ConfigOptionUpdate.ConfigOptions
	case u.UsageUpdate != nil && u.UsageUpdate.Cost != nil && u.UsageUpdate.Cost.Currency == "USD":
		c.shown.cost = u.UsageUpdate.Cost.Amount
	}
}

// unknown writes an update that has no counterpart.
func (c *conn) unknown(raw json.RawMessage) {
	c.write(other{Type: "acp_update", SessionID: c.id, UUID: c.uuid(), Update: raw})
}

// chunk adds to the block that grows, or begins another one. Outside a turn no end will come,
// so that each chunk is a message.
func (c *conn) chunk(kind string, chunk *acp.ContentChunk) {
	id := string(chunk.MessageID)
	if s := &c.shown; s.kind != kind || id != "" && s.named && id != s.id || s.text.Len() > maxText {
		c.flush()
	}
	text := chunk.Content.Text
	if text == nil {
		c.flush()
		c.assistant(id, "", block(&chunk.Content))
		return
	}
	if text.Text == "" {
		return
	}
	s := &c.shown
	if s.kind == "" {
		s.kind, s.id, s.named = kind, id, id != ""
		if id == "" {
			s.id = c.uuid()
		}
		c.streamBegins()
	}
	s.text.WriteString(text.Text)
	c.streamed(text.Text)
	if len(c.turns) == 0 {
		c.flush()
	}
}

// flush writes the block that grows.
func (c *conn) flush() {
	s := &c.shown
	if s.kind == "" {
		return
	}
	text, kind, id := s.text.String(), s.kind, s.id
	s.text.Reset()
	s.kind = ""
	if kind == "thinking" {
		c.assistant(id, "", thinkingBlock{"thinking", text, ""})
	} else {
		if len(c.turns) > 0 {
			c.turns[0].text = text
		}
		c.assistant(id, "", textBlock{"text", text})
	}
	c.streamEnds()
}

// streamBegins, streamed and streamEnds write the events of a block, if the host wants them.
func (c *conn) streamBegins() {
	empty := any(textBlock{"text", ""})
	if c.shown.kind == "thinking" {
		empty = thinkingBlock{"thinking", "", ""}
	}
	c.event(map[string]any{"type": "message_start", "message": c.message(c.shown.id)})
	c.event(map[string]any{"type": "content_block_start", "index": 0, "content_block": empty})
}

func (c *conn) streamed(text string) {
	delta := map[string]string{"type": "text_delta", "text": text}
	if c.shown.kind == "thinking" {
		delta = map[string]string{"type": "thinking_delta", "thinking": text}
	}
	c.event(map[string]any{"type": "content_block_delta", "index": 0, "delta": delta})
}

func (c *conn) streamEnds() {
	c.event(map[string]any{"type": "content_block_stop", "index": 0})
	c.event(map[string]any{"type": "message_stop"})
}

func (c *conn) event(e map[string]any) {
	if !c.setup.Partial {
		return
	}
	c.write(struct {
		Type      string         `json:"type"`
		Event     map[string]any `json:"event"`
		Parent    *string        `json:"parent_tool_use_id"`
		SessionID acp.SessionID  `json:"session_id"`
		UUID      string         `json:"uuid"`
	}{"stream_event", e, nil, c.id, c.uuid()})
}

// apiMessage is the message of an assistant line.
type apiMessage struct {
	ID           string  `json:"id"`
	Type         string  `json:"type"`
	Role         string  `json:"role"`
	Model        string  `json:"model"`
	Content      []any   `json:"content"`
	StopReason   *string `json:"stop_reason"`
	StopSequence *string `json:"stop_sequence"`
	Usage        usage   `json:"usage"`
}

type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type thinkingBlock struct {
	Type      string `json:"type"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
}

type imageBlock struct {
	Type   string      `json:"type"`
	Source imageSource `json:"source"`
}

type imageSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

func (c *conn) message(id string, content ...any) apiMessage {
	return apiMessage{ID: id, Type: "message", Role: "assistant", Model: c.model(), Content: append([]any{}, content...)}
}

// assistant writes a message of the agent; id "": a new one.
func (c *conn) assistant(id, parent string, content any) {
	if id == "" {
		id = c.uuid()
	}
	c.write(struct {
		Type      string        `json:"type"`
		Message   apiMessage    `json:"message"`
		Parent    *string       `json:"parent_tool_use_id"`
		SessionID acp.SessionID `json:"session_id"`
		UUID      string        `json:"uuid"`
	}{"assistant", c.message(id, content), orNull(parent), c.id, c.uuid()})
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// block is a block of the protocol in the terms of the model's API. Those without a counterpart
// stay as they are.
func block(b *acp.ContentBlock) any {
	switch {
	case b.Text != nil:
		return textBlock{"text", b.Text.Text}
	case b.Image != nil && b.Image.Data != "":
		return imageBlock{"image", imageSource{"base64", b.Image.MimeType, b.Image.Data}}
	}
	return b
}
