package protocol

import (
	"encoding/json"
	"fmt"
)

// Message is one content line of the stream: whatever is not a control frame.
// The concrete types are the pointers to this package's …Message structs; a
// type switch with a default stays correct as agents grow.
type Message interface {
	// Raw is the line as it came, byte for byte; nil if the message was
	// made by the program.
	Raw() json.RawMessage
	// Meta is what most lines have in common.
	Meta() Common

	isMessage()
	setRaw(json.RawMessage)
	// wire is the "type" and "subtype" of the line.
	wire() (typ, subtype string)
}

// Common is embedded in every message.
type Common struct {
	// UUID identifies the line. On a user line of the host it is chosen by
	// the host and is what results, echoes and receipts refer to.
	UUID string `json:"uuid,omitempty"`
	// SessionID is the agent's session, which is also its transcript's name.
	SessionID string `json:"session_id,omitempty"`
	// ParentToolUseID is the tool call that started the subagent the line
	// belongs to; "" for the main agent.
	ParentToolUseID string `json:"parent_tool_use_id,omitempty"`

	raw json.RawMessage
}

// Raw implements [Message].
func (c *Common) Raw() json.RawMessage { return c.raw }

// Meta implements [Message].
func (c *Common) Meta() Common { return *c }

func (c *Common) isMessage() {}

func (c *Common) setRaw(raw json.RawMessage) { c.raw = raw }

// UnknownMessage is a line of a type or subtype that this package does not
// know, or of one it knows whose fields do not decode.
type UnknownMessage struct {
	Common
	// Type and Subtype are the line's own; "" if absent.
	Type    string `json:"-"`
	Subtype string `json:"-"`
	// Err says why a known type did not decode; nil for an unknown type.
	Err error `json:"-"`
	// Partial is the known type as far as it decoded, with Err; nil for an
	// unknown type. The end of a turn is not lost over one odd field.
	Partial Message `json:"-"`
}

func (m *UnknownMessage) wire() (string, string) { return m.Type, m.Subtype }

// DecodeMessage turns a frame into a typed message. It never fails: what it
// does not know, or cannot decode, is an *[UnknownMessage]. Control frames are
// no messages and come back as such too.
func DecodeMessage(f Frame) Message {
	m := newMessage(f.Type, f.Subtype)
	if m == nil {
		u := &UnknownMessage{Type: f.Type, Subtype: f.Subtype}
		u.setFrame(&f)
		return u
	}
	if p, ok := m.(*PartialAssistantMessage); ok && p.decodeFast(&f) {
		return p
	}
	err := json.Unmarshal(f.Raw, m)
	m.setRaw(f.Raw)
	if err != nil {
		u := &UnknownMessage{Type: f.Type, Subtype: f.Subtype, Partial: m}
		u.Err = fmt.Errorf("protocol: decode %s line: %w", wireName(f.Type, f.Subtype), err)
		u.setFrame(&f)
		return u
	}
	return m
}

func (c *Common) setFrame(f *Frame) {
	c.UUID, c.SessionID, c.ParentToolUseID = f.UUID(), f.SessionID(), f.ParentToolUseID()
	c.raw = f.Raw
}

func wireName(typ, subtype string) string {
	if subtype == "" {
		return typ
	}
	return typ + "/" + subtype
}

// newMessage returns an empty message of a known type, or nil.
func newMessage(typ, subtype string) Message {
	switch typ {
	case "stream_event":
		return new(PartialAssistantMessage)
	case "assistant":
		return new(AssistantMessage)
	case "user":
		return new(UserMessage)
	case "result":
		return new(ResultMessage)
	case "system":
		return newSystemMessage(subtype)
	}
	return nil
}
