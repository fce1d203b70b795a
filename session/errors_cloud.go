package session

import (
	"fmt"
	"strings"
)

// CloudError says that a request to Qoder's Cloud Agents service failed, or that its stream of events could not be
// read. It never holds the access token. The session's error wraps it if the failure ended the session; a message that
// was not delivered has a failed result with its text.
type CloudError struct {
	// Op is what was tried: "create agent", "create session", "open event stream", "post message", "post
	// interrupt", or "archive" and "delete" with "session" or "agent".
	Op string
	// Status is the HTTP status of the answer; 0 without an answer.
	Status int
	// Type, Message and RequestID are those of the answer's body, {"type":"error","request_id":…,"error":{"type":…,
	// "message":…}} (documented by the service). A body of another shape is in Message. Each is cut to 2,048 bytes.
	Type, Message, RequestID string
	// Unclear says that the service may have received the request, although there was no answer that says so. Troupe
	// does not repeat such a request.
	Unclear bool
	// Err is the cause if there was no answer; nil with a Status.
	Err error
}

func (e *CloudError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Qoder's cloud: %s failed", e.Op)
	if e.Status != 0 {
		fmt.Fprintf(&b, " with status %d", e.Status)
	}
	for _, part := range []string{e.Type, e.Message} {
		if part != "" {
			b.WriteString(": " + part)
		}
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	if e.RequestID != "" {
		fmt.Fprintf(&b, " (request %s)", e.RequestID)
	}
	if fix := e.fix(); fix != "" {
		b.WriteString("; " + fix)
	}
	return b.String()
}

// fix is what to do about the error; "" if there is nothing that helps in general.
func (e *CloudError) fix() string {
	switch {
	case e.Status == 401 || e.Status == 403:
		return "check the access token in Options.Auth and what it may do"
	case e.Status == 404:
		return "check the ids in Options.ExperimentalCloudAgent"
	case e.Status == 429:
		return "start fewer sessions at a time, or try again later"
	case e.Unclear:
		return "the service may have received the request, so it was not sent again"
	}
	return ""
}

func (e *CloudError) Unwrap() error { return e.Err }
