package session

import (
	"fmt"
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

// StructuredOutputError says that a run has no answer that fits the schema.
// Result.StructuredOutput is the answer that the agent gave; it may be empty.
type StructuredOutputError struct {
	Result *protocol.ResultMessage // never nil
	Err    error                   // how the answer violates the schema, or that it is missing
}

func (e *StructuredOutputError) Error() string { return fmt.Sprintf("structured output: %v", e.Err) }

func (e *StructuredOutputError) Unwrap() error { return e.Err }
