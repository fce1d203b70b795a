package session

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// ControlError says that the agent refused a control request.
type ControlError struct {
	Request   string          // subtype of the request
	Message   string          // the agent's text
	Code      string          // "" if the agent gave none
	Retryable bool            // the agent says that the same request may succeed later
	Details   json.RawMessage // any JSON value; nil: the agent gave none
}

func (e *ControlError) Error() string {
	code := ""
	if e.Code != "" {
		code = " (" + e.Code + ")"
	}
	return fmt.Sprintf("the agent refused control request %s%s: %s", e.Request, code, e.Message)
}

// TimeoutError says which wait exceeded its limit, and which option sets the
// limit. It matches [context.DeadlineExceeded].
type TimeoutError struct {
	What  string        // "initialize", "control request set_model", …
	Limit time.Duration // the limit that was in force
	SetBy string        // the option that sets the limit; empty if no option sets it
	// StderrTail and StdoutTail are the end of what the agent wrote, at most 2 KiB
	// each and unchanged. StdoutTail has only lines that were not messages. Both are
	// empty unless What is "initialize".
	StderrTail string
	StdoutTail string // see StderrTail
}

func (e *TimeoutError) Error() string {
	by := ""
	if e.SetBy != "" {
		by = " (set by " + e.SetBy + ")"
	}
	return fmt.Sprintf("%s: no answer within %v%s%s", e.What, e.Limit, by, tails(e.StderrTail, e.StdoutTail))
}

// Is makes the error match [context.DeadlineExceeded].
func (e *TimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// Timeout reports true, as in [net.Error].
func (e *TimeoutError) Timeout() bool { return true }

// ModelPolicyTimeoutError says that [ResolveModel] took too long. The agent's
// call fails; the error is in a [CallbackFailed] event. It matches
// [context.DeadlineExceeded].
type ModelPolicyTimeoutError struct{ Limit time.Duration }

func (e *ModelPolicyTimeoutError) Error() string {
	return fmt.Sprintf("resolveModel did not return within %dms; raise ResolveModelTimeout or answer from a cache", e.Limit.Milliseconds())
}

// Is makes the error match [context.DeadlineExceeded].
func (e *ModelPolicyTimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// PanicError says that a callback of the host, an actor, or an agent in this process
// panicked. It is in a [CallbackFailed] or an [ActorFailed] event, in the [ExitStatus] of an
// agent, and among the reasons of a session that failed because of it.
type PanicError struct {
	Value   any    // what was passed to panic
	Message string // the callback's name, the type of the actor's message, or what the agent did
	Stack   []byte // as debug.Stack returns it
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("panic while handling %s: %v", e.Message, e.Value)
}

// Unwrap returns the panic value when it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// PatternError says that the matcher of a hook is not a regular expression of
// package regexp.
type PatternError struct {
	Pattern string // the value of [Hook].Matcher
	Err     error  // the error of package regexp
}

func (e *PatternError) Error() string {
	return fmt.Sprintf("%q is not a regular expression of Go's package regexp: %v", e.Pattern, e.Err)
}

// Unwrap returns the error of package regexp.
func (e *PatternError) Unwrap() error { return e.Err }
