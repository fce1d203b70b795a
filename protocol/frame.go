package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/agent-troupe/troupe/base/jsonscan"
)

// Values of [Frame.Type] that are not content messages.
const (
	TypeControlRequest  = "control_request"
	TypeControlResponse = "control_response"
	// TypeControlCancel cancels a control request whose answer is no longer needed.
	TypeControlCancel = "control_cancel_request"
	// TypeControlCancelAlias is another name of TypeControlCancel, which Qoder's SDK
	// accepts.
	TypeControlCancelAlias = "control_cancel"
	// TypeKeepAlive carries nothing. Agents accept it on stdin.
	TypeKeepAlive = "keep_alive"
)

// Frame is the envelope of one line: what a router needs to know before
// anything else is decoded. Raw is the line; the strings are copies.
type Frame struct {
	// Type is the top-level "type"; "" if it is absent or not a string.
	Type string
	// Subtype is the top-level "subtype". For a control_request it is
	// request.subtype, or else request.type, which Qoder also uses; for a
	// control_response it is response.subtype.
	Subtype string
	// ID correlates control frames: the top-level "request_id", or
	// response.request_id for a control_response. Zero if it is absent or no
	// valid JSON, and for other types, although some assistant lines carry a
	// request_id of the model's API.
	ID ID
	// RequestID is the text of ID if it is a string, else "".
	RequestID string
	// Replay is true on a user line that echoes an earlier one.
	Replay bool
	// Raw is the original line.
	Raw []byte

	uuid, session, parent jsonscan.Span
	// body is the value that the frame is about: request, response, event
	// or message by type.
	body jsonscan.Span
	// api is the "api_message_id" of a stream_event.
	api jsonscan.Span
	// other is true if the line has a key that the envelope does not have.
	other bool
	// oversize is set if the line was skipped, and Raw is its head.
	oversize *OversizeError
	// twice is a key of the envelope of a control_request that it has more than once;
	// or "".
	twice string
}

// UUID returns the line's "uuid", or "".
func (f *Frame) UUID() string { return jsonscan.Text(f.uuid.Of(f.Raw)) }

// SessionID returns the line's "session_id", or "".
func (f *Frame) SessionID() string { return jsonscan.Text(f.session.Of(f.Raw)) }

// ParentToolUseID returns the line's "parent_tool_use_id": the tool call of
// the subagent that the line belongs to, or "" for the main agent.
func (f *Frame) ParentToolUseID() string { return jsonscan.Text(f.parent.Of(f.Raw)) }

// Body returns the value the frame is about: "request" of a control_request,
// "response" of a control_response, "event" of a stream_event, "message" of
// any other type; nil if it is absent. It aliases Raw.
func (f *Frame) Body() json.RawMessage {
	if f.body.Empty() {
		return nil
	}
	return f.body.Of(f.Raw)
}

// FrameErrorKind says why a line is not a frame.
type FrameErrorKind uint8

const (
	// NotJSON is a line that is not a JSON value, such as a stray log line.
	NotJSON FrameErrorKind = iota + 1
	// NotObject is a JSON value other than an object.
	NotObject
	// TooLong is a line of more than 4 GiB.
	tooLong
)

func (k FrameErrorKind) String() string {
	switch k {
	case NotJSON:
		return "not JSON"
	case NotObject:
		return "not a JSON object"
	case tooLong:
		return "too long"
	}
	return fmt.Sprintf("FrameErrorKind(%d)", uint8(k))
}

// FrameError is the error of [ParseFrame]. It says nothing about the lines
// before and after: the stream can be read on.
type FrameError struct {
	Kind FrameErrorKind // which of the rules the line breaks
	// Head is a copy of the first bytes of the line, at most 256.
	Head []byte
	// Len is the length of the line in bytes.
	Len int
	// Offset is the byte of the line where it breaks.
	Offset int
}

func (e *FrameError) Error() string {
	more := ""
	if e.Len > len(e.Head) {
		more = fmt.Sprintf("… (%d bytes)", e.Len)
	}
	return fmt.Sprintf("protocol: line is %s at byte %d: %q%s", e.Kind, e.Offset, e.Head, more)
}

func frameError(kind FrameErrorKind, line []byte, offset int) *FrameError {
	return &FrameError{Kind: kind, Head: slices.Clone(line[:min(len(line), oversized)]), Len: len(line), Offset: offset}
}

// ParseFrame reads the envelope of one line in one pass, whatever the order
// of its keys; of a repeated key the last one counts. It checks that the line
// is one object with balanced strings and brackets and leaves the rest to the
// typed decoders. The frame aliases line, which must not change any more.
//
// The error is a *[FrameError]. Lines with an unknown type, or none, are frames.
func ParseFrame(line []byte) (Frame, error) {
	if uint64(len(line)) > math.MaxUint32 {
		return Frame{}, frameError(tooLong, line, 0)
	}
	f := Frame{Raw: line}
	var at [numKeys]jsonscan.Span
	twice := keyOther
	c := jsonscan.Object(line, 0)
	for key, val := range c.Members() {
		k := keyOf(key.Of(line))
		if k != keyOther && !at[k].Empty() {
			twice = k
		}
		at[k] = val
	}
	if c.Err {
		kind := NotJSON
		if json.Valid(line) {
			kind = NotObject
		}
		return Frame{}, frameError(kind, line, c.Bad)
	}
	if end := jsonscan.Space(line, c.I); end < len(line) {
		return Frame{}, frameError(NotJSON, line, end)
	}

	f.uuid, f.session, f.parent = at[keyUUID], at[keySession], at[keyParent]
	f.Type = intern(at[keyType].Of(line))
	switch f.Type {
	case "stream_event":
		f.body, f.api = at[keyEvent], at[keyAPIMessage]
		f.other = !at[keyOther].Empty()
	case TypeControlRequest:
		f.body = at[keyRequest]
		f.setID(at[keyRequestID])
		f.twice = keyNames[twice]
		in := f.nested()
		if f.Subtype = intern(in[keySubtype].Of(line)); f.Subtype == "" {
			f.Subtype = intern(in[keyType].Of(line))
		}
		return f, nil
	case TypeControlResponse:
		f.body = at[keyResponse]
		in := f.nested()
		f.Subtype = intern(in[keySubtype].Of(line))
		f.setID(in[keyRequestID])
		return f, nil
	case TypeControlCancel, TypeControlCancelAlias:
		f.setID(at[keyRequestID])
	default:
		f.body = at[keyMessage]
		f.Replay = string(at[keyReplay].Of(line)) == "true"
	}
	f.Subtype = intern(at[keySubtype].Of(line))
	return f, nil
}

// setID takes the value of "request_id". A value that is not JSON could not be written
// into an answer.
func (f *Frame) setID(value jsonscan.Span) {
	token := value.Of(f.Raw)
	if !jsonscan.Valid(token) {
		return
	}
	f.ID = ID(token)
	if token[0] != '"' {
		return
	}
	if f.RequestID = string(f.ID[1 : len(f.ID)-1]); !jsonscan.IsPlain(token[1 : len(token)-1]) {
		f.RequestID = jsonscan.Text(token)
	}
}

// CutFrame cuts a line after its first object, if another one follows. rest is nil
// for any other line.
func CutFrame(line []byte) (first, rest []byte) {
	i := jsonscan.Space(line, 0)
	if i == len(line) || line[i] != '{' {
		return line, nil
	}
	end := jsonscan.Nested(line, i)
	if end < 0 {
		return line, nil
	}
	if rest = trimSpace(line[end:]); len(rest) == 0 || rest[0] != '{' {
		return line, nil
	}
	return line[:end:end], rest
}

// nested finds the same keys in the body of a control frame; none if the body
// is not an object.
func (f *Frame) nested() (at [numKeys]jsonscan.Span) {
	c := jsonscan.Object(f.Raw[:f.body.Hi], int(f.body.Lo))
	for key, val := range c.Members() {
		at[keyOf(key.Of(f.Raw))] = val
	}
	return at
}

// The keys that an envelope consists of.
const (
	keyOther = iota
	keyType
	keySubtype
	keyRequestID
	keyUUID
	keySession
	keyParent
	keyReplay
	keyMessage
	keyEvent
	keyRequest
	keyResponse
	keyAPIMessage
	numKeys
)

// keyOf returns the number of an envelope's key, given with its quotes.
func keyOf(quoted []byte) int {
	k := knownKey(quoted)
	if k == keyOther && bytes.IndexByte(quoted, '\\') >= 0 {
		k = knownKey(slices.Concat([]byte{'"'}, jsonscan.Unescaped(quoted), []byte{'"'}))
	}
	return k
}

// keyNames are the keys as they are written.
var keyNames = [numKeys]string{ //nolint:gochecknoglobals // only read
	keyType: "type", keySubtype: "subtype", keyRequestID: "request_id", keyUUID: "uuid", keySession: "session_id",
	keyParent: "parent_tool_use_id", keyReplay: "isReplay", keyMessage: "message", keyEvent: "event",
	keyRequest: "request", keyResponse: "response", keyAPIMessage: "api_message_id",
}

func knownKey(quoted []byte) int {
	switch string(quoted) {
	case `"type"`:
		return keyType
	case `"subtype"`:
		return keySubtype
	case `"request_id"`:
		return keyRequestID
	case `"uuid"`:
		return keyUUID
	case `"session_id"`:
		return keySession
	case `"parent_tool_use_id"`:
		return keyParent
	case `"isReplay"`:
		return keyReplay
	case `"message"`:
		return keyMessage
	case `"event"`:
		return keyEvent
	case `"request"`:
		return keyRequest
	case `"response"`:
		return keyResponse
	case `"api_message_id"`:
		return keyAPIMessage
	}
	return keyOther
}

// OversizeError says that a line was above the ceiling, and was skipped.
type OversizeError struct {
	Length  int64 // bytes
	Ceiling int   // bytes
}

func (e *OversizeError) Error() string {
	return fmt.Sprintf("a line of %d bytes was skipped, the ceiling is %d: raise MaxLine", e.Length, e.Ceiling)
}

// OversizeMessage has the place of a content line above the ceiling, which was
// skipped. Raw is nil.
type OversizeMessage struct {
	Common
	// Type and Subtype are the line's, as far as its head shows them.
	Type    string `json:"-"`
	Subtype string `json:"-"` // "" for a type without subtypes, and if Head does not show it
	// Head is the first bytes of the line, at most 256.
	Head []byte `json:"-"`
	// Err is what happened.
	Err *OversizeError `json:"-"`
}

func (m *OversizeMessage) wire() (string, string) { return m.Type, m.Subtype }

// OversizeFrame is the frame of a line above the ceiling, of which only the head
// is known. [DecodeMessage] makes an *[OversizeMessage] of it.
func OversizeFrame(head []byte, length int64, ceiling int) Frame {
	return Frame{Raw: head, oversize: &OversizeError{Length: length, Ceiling: ceiling}}
}

// Oversize is why only the head of the line is known; nil for any other frame.
func (f *Frame) Oversize() *OversizeError { return f.oversize }

func (e *OversizeError) message(f *Frame) *OversizeMessage {
	return &OversizeMessage{Type: f.Type, Subtype: f.Subtype, Head: slices.Clone(f.Raw), Err: e}
}
