package session

import (
	"fmt"
	"time"

	"github.com/agent-troupe/troupe/protocol"
)

// ResultError says that a run ended in a result that is an error: the model's
// API failed, a limit was reached, the turn was interrupted.
type ResultError struct {
	Result *protocol.ResultMessage // never nil
	// RetryAfter is how long the limit that was reached still held when the
	// result came; 0 if the agent did not say.
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

// StructuredOutputError says that a run has no answer of the shape that was
// asked for. Result.StructuredOutput is the answer that came instead.
type StructuredOutputError struct {
	Result *protocol.ResultMessage // never nil
	Err    error                   // what is wrong with the answer
}

func (e *StructuredOutputError) Error() string { return fmt.Sprintf("structured output: %v", e.Err) }

func (e *StructuredOutputError) Unwrap() error { return e.Err }
