package machine

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Fault is an error in a snapshot: nil, or its text and, of the error that it wraps,
// what a user may ask for with errors.Is and errors.As.
type Fault struct{ Err error }

// restored is an error that comes from a snapshot.
type restored struct {
	text string
	err  error
}

func (r *restored) Error() string { return r.text }
func (r *restored) Unwrap() error { return r.err }

type faultJSON struct {
	Text string
	Kind string          `json:",omitempty"`
	Data json.RawMessage `json:",omitempty"`
}

// MarshalJSON implements [json.Marshaler].
func (f Fault) MarshalJSON() ([]byte, error) {
	if f.Err == nil {
		return []byte("null"), nil
	}
	out := faultJSON{Text: f.Err.Error()}
	kind, cause := causeOf(f.Err)
	if cause != nil {
		data, err := json.Marshal(cause)
		if err != nil {
			return nil, fmt.Errorf("error of kind %s: %w", kind, err)
		}
		out.Kind, out.Data = kind, data
	}
	return json.Marshal(out)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (f *Fault) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		f.Err = nil
		return nil
	}
	var in faultJSON
	if err := json.Unmarshal(data, &in); err != nil { //nolint:forbidigo // our own words, not an agent's
		return err
	}
	cause := newCause(in.Kind)
	if cause == nil {
		f.Err = &restored{text: in.Text}
		return nil
	}
	if err := json.Unmarshal(in.Data, cause); err != nil { //nolint:forbidigo // as above
		return fmt.Errorf("error of kind %s: %w", in.Kind, err)
	}
	if f.Err = cause; cause.Error() != in.Text {
		f.Err = &restored{in.Text, cause}
	}
	return nil
}

// causeOf finds the typed error that err wraps.
func causeOf(err error) (kind string, cause error) {
	if e, ok := errors.AsType[*session.TimeoutError](err); ok {
		return "timeout", e
	}
	if e, ok := errors.AsType[*session.ControlError](err); ok {
		return "control", e
	}
	if e, ok := errors.AsType[*session.EchoError](err); ok {
		return "echo", e
	}
	if e, ok := errors.AsType[*session.ProtocolVersionError](err); ok {
		return "version", e
	}
	if e, ok := errors.AsType[*session.BreakerOpenError](err); ok {
		return "breaker", e
	}
	if e, ok := errors.AsType[*session.RetryLimitError](err); ok {
		return "retries", e
	}
	return "", nil
}

func newCause(kind string) error {
	switch kind {
	case "timeout":
		return &session.TimeoutError{}
	case "control":
		return &session.ControlError{}
	case "echo":
		return &session.EchoError{}
	case "version":
		return &session.ProtocolVersionError{}
	case "retries":
		return &session.RetryLimitError{}
	case "breaker":
		return &session.BreakerOpenError{}
	}
	return nil
}

// refusal turns an error answer into an error.
func refusal(request string, r *protocol.ControlResponse) error {
	return &session.ControlError{Request: request, Message: r.Error, Code: r.ErrorCode, Retryable: r.Retryable, Details: r.Details}
}
