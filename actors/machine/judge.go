package machine

import "github.com/agent-troupe/troupe/protocol"

// Judged is what a result says about the model's API. To: the runtime.
type Judged struct{ Failure string } // "": it answers

func (Judged) effect() {}

// Spent is a result, which says what was used. To: the runtime.
type Spent struct{ Result *protocol.ResultMessage }

func (Spent) effect() {}

// String names the result by its uuid, so that equal effects have equal texts.
func (s Spent) String() string { return "Spent " + s.Result.UUID }

// Transient reports whether a failed result is a passing fault of the model's API:
// overload, a lost connection, a time-out, an answer that is malformed. A kind of failure
// that is not known here counts as permanent.
func Transient(r *protocol.ResultMessage) bool {
	switch r.APIErrorType {
	case "overloaded_error", "rate_limit_error", "api_error", "timeout_error":
		return true
	}
	if status := r.APIErrorStatus; status != 0 {
		return status == 408 || status == 429 || status >= 500
	}
	switch r.APIError {
	case "connection_failed", "stream_idle_timeout", "computer_slept", "no_response", "empty_completion":
		return true
	case "":
		// Neither a time-out nor a malformed answer has a status or a kind of
		// its own (observed on Claude Code 2.1.329).
		return r.TerminalReason == "api_error" && r.APIErrorType == ""
	}
	return false
}

// judge says what a result that was not interrupted shows of the model's API. One for
// which no model was asked shows nothing.
func (m *Routing) judge(r *protocol.ResultMessage) {
	switch {
	case r.Failed() && Transient(r):
		m.do(Judged{failureOf(r)})
	case !r.Failed() && r.DurationAPIMS > 0:
		m.do(Judged{})
	}
}
