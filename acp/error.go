package acp

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ErrClosed is the error of a call whose connection has ended.
var ErrClosed = errors.New("acp: the connection has ended")

// Error is an error of JSON-RPC: what the other side answered, or what a handler wants to
// answer.
type Error struct {
	Code    ErrorCode       `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error returns the message with its code.
func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Message, int(e.Code)) }

// errorOf is what is answered for the error of a handler.
func errorOf(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Code: CodeInternalError, Message: err.Error()}
}
