package session

import (
	"fmt"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/protocol"
)

// ResultError says that a run ended with a result that is an error: the model's API
// failed, a limit was reached, or the turn was interrupted.
type ResultError struct {
	Result *protocol.ResultMessage // never nil
	// RetryAfter is how long to wait until the limit that was reached is lifted,
	// counted from the arrival of the result; 0 if the agent did not say.
	RetryAfter time.Duration
}

func (e *ResultError) Error() string {
	r := e.Result
	why := r.Subtype
	if why == protocol.ResultSuccess { // an API error comes as one
		why = r.TerminalReason
	}
	msg := "the run ended in an error"
	if r.Interrupted() && why != r.TerminalReason {
		why += ", " + r.TerminalReason
	}
	if why != "" {
		msg += " (" + why + ")"
	}
	if text := r.Text(); text != "" {
		msg += ": " + text
	}
	return msg
}

// RetryLimitError says that a turn was ended because the agent only tried a call of the
// model's API again: longer than Limits.Retry, or with a login that the API refuses.
type RetryLimitError struct {
	Status   int           // HTTP status of the last attempt; 0: none
	Kind     string        // what the agent calls the failure, such as overloaded; may be empty
	Attempts int           // how many retries the agent reported since its last progress
	For      time.Duration // since the first of them
	Limit    time.Duration // Limits.Retry
}

func (e *RetryLimitError) Error() string {
	why := e.Kind
	if e.Status != 0 {
		why = strings.TrimSpace(fmt.Sprintf("status %d %s", e.Status, e.Kind))
	}
	if e.Refused() {
		return "the model's API refuses the login, and the agent tries again (" + why + ")"
	}
	return fmt.Sprintf("the agent only tried the model's API again for %v (retries: %d, last: %s; Limits.Retry is %v)",
		e.For.Round(time.Second), e.Attempts, why, e.Limit)
}

// Refused reports whether the API refuses the login, so that a retry changes nothing.
func (e *RetryLimitError) Refused() bool { return e.Status == 401 || e.Status == 403 }

// StructuredOutputError says that a run has no answer that fits the schema.
// Result.StructuredOutput is the answer that the agent gave; it may be empty.
type StructuredOutputError struct {
	Result *protocol.ResultMessage // never nil
	Err    error                   // how the answer violates the schema, or that it is missing
}

func (e *StructuredOutputError) Error() string { return fmt.Sprintf("structured output: %v", e.Err) }

func (e *StructuredOutputError) Unwrap() error { return e.Err }
