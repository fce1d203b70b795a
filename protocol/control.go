package protocol

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/agent-troupe/troupe/base/jsonscan"
)

// Request is a control request in either direction: the value of "request"
// in a control_request line.
type Request interface {
	// Subtype is the request's kind on the wire.
	Subtype() string
}

// Discriminator says under which keys a request names its kind.
type Discriminator uint8

const (
	// SubtypeOnly writes "subtype" first, as Claude's SDK does and Qoder's
	// does for some requests.
	SubtypeOnly Discriminator = iota
	// TypeAndSubtype writes "type" first and "subtype" last, as Qoder's SDK
	// does for the others (observed on 1.0.39).
	TypeAndSubtype
)

// MarshalRequest encodes r with its kind. The keys are in the order of the
// struct's fields.
func MarshalRequest(r Request, d Discriminator) (json.RawMessage, error) {
	if u, ok := r.(rawRequest); ok {
		return u.rawRequest(), nil
	}
	body, err := Marshal(r)
	if err == nil {
		if d == SubtypeOnly {
			body, err = prefixed(body, "subtype", r.Subtype())
		} else {
			body, err = prefixed(body, "type", r.Subtype())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("protocol: encode %s request: %w", r.Subtype(), err)
	}
	if d == TypeAndSubtype {
		body = append(body[:len(body)-1], `,"subtype":`...)
		body = append(appendString(body, r.Subtype()), '}')
	}
	return body, nil
}

// rawRequest is a request that is kept unchanged.
type rawRequest interface{ rawRequest() json.RawMessage }

// decodeRequest decodes the body of a control_request line into r.
func decodeRequest(f *Frame, r Request) error {
	if f.Type != TypeControlRequest {
		return fmt.Errorf("protocol: decode request: line is a %q, not a %s", f.Type, TypeControlRequest)
	}
	err := f.distinct()
	if err == nil {
		err = Unmarshal(f.Body(), r)
	}
	if err != nil {
		return fmt.Errorf("protocol: decode %s request %.80s: %w", f.Subtype, f.ID, err)
	}
	return nil
}

// Values of [ControlResponse.Subtype].
const (
	ResponseSuccess = "success"
	ResponseError   = "error"
)

// ControlResponse is the answer to a control request, in either direction.
type ControlResponse struct {
	// Subtype is success or error.
	Subtype   string
	RequestID string // the request_id of the request that this answers
	// Response is the value of a success: nil if the key is absent, as for
	// a call without a result, and else any JSON value: an object mostly,
	// but null and a bare string have been observed. It aliases the line
	// and is not validated; see Decode.
	Response json.RawMessage

	// Error is the text of an error.
	Error string
	// ErrorCode is its error_code (Claude Code) or code (Qoder); "" if none.
	ErrorCode string
	// Retryable and Details come from Qoder.
	Retryable bool
	Details   json.RawMessage // any JSON value about the error; nil: not sent

	// PendingPermissionRequests and PendingUserDialogRequests are requests
	// of the agent that still wait for an answer, each with its own id. Both a success and
	// an error can have them. Entries that are not frames are left out, because they have
	// no id to answer to.
	PendingPermissionRequests []Frame
	PendingUserDialogRequests []Frame // [UserDialogRequest] frames
}

// Failed reports whether the answer is anything but a success.
func (r *ControlResponse) Failed() bool { return r.Subtype != ResponseSuccess }

// Decode decodes Response into v, by the exact names of its keys; see
// [Unmarshal]. Into a struct that has a field without a name in a json tag it
// decodes as encoding/json does. An absent or null Response leaves v as it is.
func (r *ControlResponse) Decode(v any) error {
	if isNull(r.Response) {
		return nil
	}
	decode := Unmarshal
	if shapeOf(reflect.TypeOf(v)).unnamed(nil) != "" {
		decode = json.Unmarshal
	}
	if err := decode(r.Response, v); err != nil {
		return fmt.Errorf("protocol: decode answer to %q: %w", r.RequestID, err)
	}
	return nil
}

// DecodeControlResponse decodes a control_response line.
func DecodeControlResponse(f Frame) (*ControlResponse, error) {
	if f.Type != TypeControlResponse {
		return nil, fmt.Errorf("protocol: decode answer: line is a %q, not a %s", f.Type, TypeControlResponse)
	}
	r := &ControlResponse{Subtype: f.Subtype, RequestID: f.RequestID}
	body := f.Body()
	var errorCode, code, camelCode []byte
	c := jsonscan.Object(body, 0)
	for key, val := range c.Members() {
		v := val.Of(body)
		switch string(jsonscan.Unescaped(key.Of(body))) {
		case "response":
			r.Response = v
		case "error":
			r.Error = looseString(v)
		case "error_code":
			errorCode = v
		case "errorCode":
			camelCode = v
		case "code":
			code = v
		case "retryable":
			r.Retryable = string(v) == "true"
		case "details":
			r.Details = slices.Clone(v)
		case "pending_permission_requests":
			r.PendingPermissionRequests = framesOf(v)
		case "pending_user_dialog_requests":
			r.PendingUserDialogRequests = framesOf(v)
		}
	}
	if c.Err {
		return nil, fmt.Errorf("protocol: decode answer: \"response\" is not an object: %.80q", body)
	}
	for _, v := range [][]byte{errorCode, code, camelCode} {
		if r.ErrorCode == "" {
			r.ErrorCode = looseString(v)
		}
	}
	return r, nil
}

// framesOf returns the elements of an array that are frames.
func framesOf(raw []byte) []Frame {
	var out []Frame
	c := jsonscan.Array(raw, 0)
	for val := range c.Elements() {
		if f, err := ParseFrame(val.Of(raw)); err == nil {
			out = append(out, f)
		}
	}
	return out
}
