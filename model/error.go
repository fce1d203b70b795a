package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/protocol"
)

// ErrStopped says that emit has returned false.
var ErrStopped = errors.New("model: the receiver of the answer has stopped")

// ErrSilent is the cause of a Network error: no byte came for [Config.Idle].
var ErrSilent = errors.New("the endpoint was silent for too long")

// Class is what an error means for the caller.
type Class string

// The classes.
const (
	Overload Class = "overload" // the provider has too much to do: 503, 529, or said in the stream
	Rate     Class = "rate"     // too many requests: 429
	Quota    Class = "quota"    // the money or the month is spent: 402, or 429 that says so
	Auth     Class = "auth"     // the key is missing or wrong: 401, 403
	Invalid  Class = "invalid"  // the request is wrong: 400, 404, 422
	TooLong  Class = "too_long" // the conversation does not fit: 413, or 400 that says so
	Server   Class = "server"   // the provider failed: another 5xx
	Network  Class = "network"  // no connection, a cut or silent stream
	Broken   Class = "broken"   // a malformed answer: no JSON, no events, events out of order
)

// Error is why a request has failed. Match it with errors.As.
type Error struct {
	Class  Class
	Status int // of HTTP; 0: there was no answer
	// Type and Message are the provider's. A key that the message contains is masked.
	Type, Message string
	RequestID     string        // the provider's; "": none
	RetryAfter    time.Duration // what the provider asks for; below 0: it does not say
	// Final says that the provider does not want the request again (X-Should-Retry: false).
	Final bool
	// Started says that events had come.
	Started bool
	Err     error // the cause; nil: the answer says it all
}

// Error says what failed, with the status and the provider's own words.
func (e *Error) Error() string {
	text := e.Message
	switch {
	case text == "" && e.Err != nil:
		text = e.Err.Error()
	case e.Err != nil:
		text += ": " + e.Err.Error()
	}
	if e.Status != 0 && e.Status != http.StatusOK {
		text = fmt.Sprintf("%d %s", e.Status, text)
	}
	return "model: " + string(e.Class) + ": " + text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Temporary reports whether the same request may succeed later.
func (e *Error) Temporary() bool {
	if e.Final {
		return false
	}
	switch e.Class {
	case Overload, Rate, Server, Network:
		return true
	case Quota, Auth, Invalid, TooLong, Broken:
	}
	return e.Status == http.StatusRequestTimeout || e.Status == http.StatusConflict
}

// broken is the error of a malformed answer.
func broken(format string, args ...any) *Error {
	return &Error{Class: Broken, Status: http.StatusOK, RetryAfter: -1, Message: fmt.Sprintf(format, args...)}
}

// said is what providers put in the body of an error. Some send the object itself, some
// below "error", some a string there, some a list of one.
type said struct {
	Type    string          `json:"type"`
	Code    json.RawMessage `json:"code"`
	Status  string          `json:"status"`
	Message string          `json:"message"`
	Detail  json.RawMessage `json:"detail"`
	Error   json.RawMessage `json:"error"`
}

// words finds the type, the code and the message in an error's body.
func words(body []byte) (kind, message string, status int) {
	var list []json.RawMessage
	if protocol.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var s said
	if protocol.Unmarshal(body, &s) != nil {
		return "", "", 0
	}
	if len(s.Error) > 0 && string(s.Error) != "null" {
		var text string
		if protocol.Unmarshal(s.Error, &text) == nil {
			return "", text, 0
		}
		return words(s.Error)
	}
	kind = s.Type
	var code string
	if protocol.Unmarshal(s.Code, &code) != nil {
		_ = protocol.Unmarshal(s.Code, &status) // a number: the HTTP status of the provider behind the server
	} else if n, err := strconv.Atoi(code); err == nil && len(code) == 3 {
		code, status = "", n // the same, as a string
	}
	if code != "" && (kind == "" || kind == "invalid_request_error" || code == "insufficient_quota") {
		kind = code // the code says more
	}
	if kind == "" || kind == "error" {
		kind = strings.ToLower(s.Status) // Google's
	}
	message = s.Message
	if message == "" && len(s.Detail) > 0 {
		if protocol.Unmarshal(s.Detail, &message) != nil {
			message = string(s.Detail)
		}
	}
	return kind, message, status
}

// maxErrorText is how many bytes of a malformed answer an error shows.
const maxErrorText = 2048

// refusal is the error of an answer whose status is not 200.
func refusal(resp *http.Response, body []byte) *Error {
	e := &Error{Status: resp.StatusCode, RetryAfter: retryAfter(resp.Header), Final: resp.Header.Get("X-Should-Retry") == "false"}
	e.Type, e.Message, _ = words(body)
	if e.Message == "" {
		e.Message = strings.TrimSpace(string(body[:min(len(body), maxErrorText)]))
	}
	if e.Message == "" {
		e.Message = http.StatusText(e.Status)
	}
	e.Class = classOf(e.Status, e.Type, e.Message)
	return e
}

// inStream is the error that a stream of status 200 carries.
func inStream(body []byte) *Error {
	e := &Error{Status: http.StatusOK, RetryAfter: -1}
	var status int
	if e.Type, e.Message, status = words(body); status < http.StatusBadRequest || status > 599 {
		status = 0 // a number of the server's
	}
	if e.Message == "" {
		e.Message = string(body[:min(len(body), maxErrorText)])
	}
	e.Class = classOf(status, e.Type, e.Message)
	if status == http.StatusRequestTimeout || status == http.StatusConflict { // it may succeed later
		e.Class = Server
	}
	return e
}

// retryAfter reads the header in its three forms: milliseconds, seconds, a date.
func retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms >= 0 && ms < 1e10 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s >= 0 && s < 1e7 {
		return time.Duration(s * float64(time.Second))
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return -1
	}
	// The server's own clock says what now is; this one's may be wrong.
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil || at.Before(now) {
		return -1
	}
	return at.Sub(now)
}

// classOf sorts an error. Providers' words count before the status: servers in front of
// others give 400 for nearly everything.
func classOf(status int, kind, message string) Class {
	lower := strings.ToLower(message)
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(lower, p) {
				return true
			}
		}
		return false
	}
	switch kind {
	case "overloaded_error", "overloaded", "unavailable":
		return Overload
	case "insufficient_quota", "billing_error", "billing_not_active":
		return Quota
	case "authentication_error", "permission_error", "invalid_api_key", "unauthenticated", "permission_denied":
		return Auth
	case "request_too_large", "context_length_exceeded", "exceed_context_size_error":
		return TooLong
	}
	switch {
	case status == 529, status == http.StatusServiceUnavailable:
		return Overload
	case status == http.StatusPaymentRequired, has("credit balance is too low", "exceeded your current quota"):
		return Quota
	case status == http.StatusTooManyRequests, kind == "rate_limit_error", kind == "rate_limit_exceeded", kind == "resource_exhausted":
		return Rate
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return Auth
	case status == http.StatusRequestEntityTooLarge,
		has("prompt is too long", "context length", "context window", "maximum context", "context size", "too many tokens"):
		return TooLong
	case status >= http.StatusBadRequest && status < http.StatusInternalServerError: // whatever it calls it: Ollama says api_error
		return Invalid
	case status >= http.StatusInternalServerError, itsFault(kind):
		return Server
	case status == 0 && !blamesRequest(kind): // it had accepted the request
		return Server
	}
	return Invalid
}

// itsFault reports whether a kind of error is known to be the provider's fault.
func itsFault(kind string) bool {
	switch kind {
	case "api_error", "server_error", "internal", "internal_error", "internal_server_error", "InternalServerError",
		"engine_error", "timeout_error", "deadline_exceeded":
		return true
	}
	return false
}

// blamesRequest reports whether a kind of error says that the request is wrong. Servers have many
// names for that: invalid_request_error, model_not_found, BadRequestError, failed_precondition.
func blamesRequest(kind string) bool {
	kind = strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(kind))
	for _, part := range []string{
		"invalid", "notfound", "badrequest", "unsupported", "notsupported", "unprocessable", "validation", "notallowed", "malformed",
		"failedprecondition", "outofrange", "unimplemented", "alreadyexists", "contentfilter", "contentpolicy", "safety", "moderation",
	} {
		if strings.Contains(kind, part) {
			return true
		}
	}
	return false
}
