package protocol

import (
	"encoding/json"
	"slices"

	"github.com/agent-troupe/troupe/base/jsonscan"
	"github.com/agent-troupe/troupe/base/wire"
)

// PartialAssistantMessage is a stream_event line: one event of the model's
// stream, while it is written. Lines of subagents are not forwarded (observed
// on Claude Code 2.1.329).
type PartialAssistantMessage struct {
	Common
	// Event is never nil after decoding.
	Event StreamEvent `json:"-"`
	// TTFTMS is the time to the first token; only on the first message_start.
	TTFTMS           Millis   `json:"ttft_ms,omitempty"`
	APIMessageID     string   `json:"api_message_id,omitempty"`     // the API's id of the response, as in APIMessage.ID; "": not sent
	ThinkingDisplay  string   `json:"thinking_display,omitempty"`   // as AssistantMessage.ThinkingDisplay
	UserMessageUUID  string   `json:"user_message_uuid,omitempty"`  // as AssistantMessage.UserMessageUUID, on the first event
	UserMessageUUIDs []string `json:"user_message_uuids,omitempty"` // as AssistantMessage.UserMessageUUIDs
	ResumeReason     string   `json:"resume_reason,omitempty"`      // as AssistantMessage.ResumeReason
	// AbandonedBlocks is on a message_stop that the agent made itself, having
	// given the response up.
	AbandonedBlocks *AbandonedBlocks `json:"abandoned_blocks,omitempty"`
	// TextRunsJoined is on the message_start of a response whose adjacent
	// text blocks come as one block of one assistant message.
	TextRunsJoined bool     `json:"text_runs_joined,omitempty"`
	OwedRows       []string `json:"owed_rows,omitempty"` // uuids of transcript lines that are not on disk yet; for claude.ai projects
}

// AbandonedBlocks says which blocks of a response never come as an assistant
// message: FromBlockIndex and those after it (observed on Claude Code 2.1.329,
// when an answer of the model broke off).
type AbandonedBlocks struct {
	APIMessageID   string `json:"api_message_id"`   // the response, as in APIMessage.ID
	FromBlockIndex int    `json:"from_block_index"` // 0 is the whole response
}

func (*PartialAssistantMessage) wire() (string, string) { return "stream_event", "" }

// Text returns the text that the event adds; "" if it adds none.
func (m *PartialAssistantMessage) Text() string {
	if e, ok := m.Event.(*ContentBlockDelta); ok {
		if d, ok := e.Delta.(*DeltaText); ok {
			return d.Text
		}
	}
	return ""
}

type plainPartial PartialAssistantMessage

// partialJSON is the line with its event left raw.
type partialJSON struct {
	*plainPartial
	Event json.RawMessage `json:"event"`
}

// UnmarshalJSON decodes the line and its event.
func (m *PartialAssistantMessage) UnmarshalJSON(b []byte) error {
	aux := partialJSON{plainPartial: (*plainPartial)(m)}
	if err := Unmarshal(b, &aux); err != nil {
		m.Event = &UnknownEvent{}
		return err
	}
	m.Event = decodeEvent(aux.Event)
	return nil
}

// MarshalJSON encodes the line's fields and its event, without its "type".
func (m *PartialAssistantMessage) MarshalJSON() ([]byte, error) {
	event := json.RawMessage("{}")
	if m.Event != nil {
		var err error
		if event, err = Marshal(m.Event); err != nil {
			return nil, err
		}
	}
	return Marshal(partialJSON{plainPartial: (*plainPartial)(m), Event: event})
}

// StreamEvent is one event of the model's stream. The concrete types are
// *[MessageStart], *[ContentBlockStart], *[ContentBlockDelta],
// *[ContentBlockStop], *[MessageDelta], *[MessageStop], *[Ping],
// *[StreamError] and *[UnknownEvent].
type StreamEvent interface {
	// EventType is the "type" of the event.
	EventType() string
	isEvent()
}

// MessageStart begins a message; its content is empty.
type MessageStart struct {
	Message APIMessage `json:"message"` // Content is empty, StopReason "", and Usage preliminary
}

// ContentBlockStart begins the content block Index.
type ContentBlockStart struct {
	Index int          // from 0, in the response
	Block ContentBlock // empty, to be filled by deltas
}

// ContentBlockDelta adds to the content block Index. The whole block also
// comes as an [AssistantMessage], before its [ContentBlockStop].
type ContentBlockDelta struct {
	Index int   // as in [ContentBlockStart]
	Delta Delta // never nil after decoding
}

// ContentBlockStop ends the content block Index.
type ContentBlockStop struct {
	Index int `json:"index"` // as in [ContentBlockStart]
}

// MessageDelta carries what is known at the end of a message.
type MessageDelta struct {
	Delta             MessageDeltaBody `json:"delta"`                        // why the model stopped
	Usage             *Usage           `json:"usage,omitempty"`              // of the whole response; nil: not sent
	ContextManagement json.RawMessage  `json:"context_management,omitempty"` // what the API removed from the context, or nil
}

// MessageDeltaBody is the change of a [MessageDelta].
type MessageDeltaBody struct {
	StopReason   string          `json:"stop_reason,omitempty"`   // as APIMessage.StopReason
	StopSequence string          `json:"stop_sequence,omitempty"` // as APIMessage.StopSequence
	StopDetails  json.RawMessage `json:"stop_details,omitempty"`  // as APIMessage.StopDetails
	Container    json.RawMessage `json:"container,omitempty"`     // as APIMessage.Container
}

// MessageStop ends a message.
type MessageStop struct{}

// Ping carries nothing.
type Ping struct{}

// StreamError is an error of the model's API in mid stream.
type StreamError struct {
	Error APIError `json:"error"` // the error; no further event of the response comes
}

// APIError is an error object of the model's API.
type APIError struct {
	Type    string `json:"type"`    // overloaded_error, api_error, invalid_request_error, …
	Message string `json:"message"` // for people
}

// UnknownEvent is an event that this package does not know, or a known one
// that does not decode.
type UnknownEvent struct {
	Type string          // the event's type as the agent sent it; "" if absent
	Raw  json.RawMessage // the whole event, written back unchanged
	// Err says why a known type did not decode; nil for an unknown type.
	Err error
}

func decodeEvent(raw json.RawMessage) StreamEvent {
	typ := jsonscan.Text(jsonscan.Get(raw, "type"))
	e := streamEvents.New(typ)
	if e == nil {
		return &UnknownEvent{Type: typ, Raw: slices.Clone(raw)}
	}
	if err := Unmarshal(raw, e); err != nil {
		return &UnknownEvent{Type: typ, Raw: slices.Clone(raw), Err: err}
	}
	return e
}

var streamEvents = wire.TypesBy[StreamEvent](StreamEvent.EventType, //nolint:gochecknoglobals // only read
	new(MessageStart), new(ContentBlockStart), new(ContentBlockDelta), new(ContentBlockStop), new(MessageDelta),
	new(MessageStop), new(Ping), new(StreamError),
)

func (*MessageStart) isEvent()      {}
func (*ContentBlockStart) isEvent() {}
func (*ContentBlockDelta) isEvent() {}
func (*ContentBlockStop) isEvent()  {}
func (*MessageDelta) isEvent()      {}
func (*MessageStop) isEvent()       {}
func (*Ping) isEvent()              {}
func (*StreamError) isEvent()       {}
func (*UnknownEvent) isEvent()      {}

// EventType implements [StreamEvent].
func (*MessageStart) EventType() string { return "message_start" }

// EventType implements [StreamEvent].
func (*ContentBlockStart) EventType() string { return "content_block_start" }

// EventType implements [StreamEvent].
func (*ContentBlockDelta) EventType() string { return "content_block_delta" }

// EventType implements [StreamEvent].
func (*ContentBlockStop) EventType() string { return "content_block_stop" }

// EventType implements [StreamEvent].
func (*MessageDelta) EventType() string { return "message_delta" }

// EventType implements [StreamEvent].
func (*MessageStop) EventType() string { return "message_stop" }

// EventType implements [StreamEvent].
func (*Ping) EventType() string { return "ping" }

// EventType implements [StreamEvent].
func (*StreamError) EventType() string { return "error" }

// EventType implements [StreamEvent].
func (e *UnknownEvent) EventType() string { return e.Type }

// MarshalJSON adds the event's "type".
func (e *MessageStart) MarshalJSON() ([]byte, error) {
	type plain MessageStart
	return marshalAs(e.EventType(), (*plain)(e))
}

// contentBlockJSON is the form of the two events that carry a union.
type contentBlockJSON struct {
	Index        int             `json:"index"`
	ContentBlock json.RawMessage `json:"content_block,omitempty"`
	Delta        json.RawMessage `json:"delta,omitempty"`
}

// UnmarshalJSON decodes the event.
func (e *ContentBlockStart) UnmarshalJSON(b []byte) error {
	var aux contentBlockJSON
	if err := Unmarshal(b, &aux); err != nil {
		return err
	}
	e.Index, e.Block = aux.Index, decodeBlock(aux.ContentBlock, 0)
	return nil
}

// MarshalJSON adds the event's "type".
func (e *ContentBlockStart) MarshalJSON() ([]byte, error) {
	block, err := Marshal(e.Block)
	if err != nil {
		return nil, err
	}
	return marshalAs(e.EventType(), contentBlockJSON{Index: e.Index, ContentBlock: block})
}

// UnmarshalJSON decodes the event.
func (e *ContentBlockDelta) UnmarshalJSON(b []byte) error {
	var aux contentBlockJSON
	if err := Unmarshal(b, &aux); err != nil {
		return err
	}
	e.Index, e.Delta = aux.Index, decodeDelta(aux.Delta)
	return nil
}

// MarshalJSON adds the event's "type".
func (e *ContentBlockDelta) MarshalJSON() ([]byte, error) {
	delta, err := Marshal(e.Delta)
	if err != nil {
		return nil, err
	}
	return marshalAs(e.EventType(), contentBlockJSON{Index: e.Index, Delta: delta})
}

// MarshalJSON adds the event's "type".
func (e *ContentBlockStop) MarshalJSON() ([]byte, error) {
	type plain ContentBlockStop
	return marshalAs(e.EventType(), (*plain)(e))
}

// MarshalJSON adds the event's "type".
func (e *MessageDelta) MarshalJSON() ([]byte, error) {
	type plain MessageDelta
	return marshalAs(e.EventType(), (*plain)(e))
}

// MarshalJSON adds the event's "type".
func (e *MessageStop) MarshalJSON() ([]byte, error) {
	return marshalAs(e.EventType(), struct{}{})
}

// MarshalJSON adds the event's "type".
func (e *Ping) MarshalJSON() ([]byte, error) { return marshalAs(e.EventType(), struct{}{}) }

// MarshalJSON adds the event's "type".
func (e *StreamError) MarshalJSON() ([]byte, error) {
	type plain StreamError
	return marshalAs(e.EventType(), (*plain)(e))
}

// MarshalJSON returns the event unchanged.
func (e *UnknownEvent) MarshalJSON() ([]byte, error) { return orEmptyObject(e.Raw), nil }
