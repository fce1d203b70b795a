package sdk

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/session"
)

// The errors that most programs match with errors.As. Package session has the
// others of a session, package protocol those of the wire format, and package
// supervisor the error of a session whose actors crashed too often.
type (
	// ConfigError is an option that cannot work. All of them are found before anything
	// starts and returned as one joined error; see [ConfigErrors]. It is
	// [session.ConfigError].
	ConfigError = session.ConfigError
	// StartError says that the agent could not be started. It is
	// [session.StartError].
	StartError = session.StartError
	// ExitError says that the agent ended unexpectedly. It is [session.ExitError].
	ExitError = session.ExitError
	// AuthError says that the agent's login is missing or has expired. It wraps
	// an *[ExitError] or a *[ResultError]. It is [session.AuthError].
	AuthError = session.AuthError
	// ResultError says that a run ended with a result that is an error: the model's API
	// failed, a limit was reached, or the turn was interrupted. It is
	// [session.ResultError].
	ResultError = session.ResultError
	// ControlError says that the agent refused a control request. It is
	// [session.ControlError].
	ControlError = session.ControlError
	// TimeoutError says which wait exceeded its limit, and which option sets the limit.
	// It matches context.DeadlineExceeded. It is [session.TimeoutError].
	TimeoutError = session.TimeoutError
)

// The errors that most programs match with errors.Is. Package session has the
// others, such as [session.ErrNotRun] and [session.ErrTooLarge].
var (
	// ErrBusy says that another loop is reading the session's messages.
	ErrBusy = session.ErrBusy
	// ErrClaimTaken says that an earlier [Client.Claim] succeeded, but had returned
	// before its answer arrived.
	ErrClaimTaken = errors.New("an earlier claim succeeded, but its answer is lost; close the client and start the session with NewClient")
	// ErrClaimUnsure says that [Client.Claim] returned before the answer arrived, so
	// that the claim may have succeeded.
	ErrClaimUnsure = errors.New("the claim may have succeeded; claim again to find out, or close the client")
	// ErrClosed says that the session was closed.
	ErrClosed = session.ErrClosed
	// ErrNotConnected says that [Client.Connect] was not called, or failed.
	ErrNotConnected = errors.New("the client is not connected; call Connect first")
)

// ConfigErrors returns every *[ConfigError] in err, in the order in which Troupe found
// them.
func ConfigErrors(err error) []*ConfigError { return session.ConfigErrors(err) }

var errNoStructuredOutput = errors.New("the model returned no structured output")

// Retryable reports whether the same call may succeed if it is made again. That is so
// if the model's API was overloaded, could not be reached, timed out or gave a
// malformed answer; if the agent died or did not answer; and if the model's answer did
// not fit the schema. So it is if a breaker of the runtime was open, which closes by
// itself. A retry may repeat side effects.
func Retryable(err error) bool {
	var (
		control *ControlError
		result  *ResultError
		auth    *AuthError
		exit    *ExitError
		start   *StartError
		timeout *TimeoutError
		shape   *session.StructuredOutputError
		breaker *session.BreakerOpenError
		retries *session.RetryLimitError
	)
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, ErrClosed), errors.As(err, &auth),
		errors.Is(err, session.ErrConsumerStalled): // there was no reader, and a retry changes nothing
		return false
	case errors.As(err, &breaker):
		return true
	case errors.As(err, &retries):
		return !retries.Refused()
	case errors.As(err, &control):
		return control.Retryable
	case errors.As(err, &shape):
		return true
	case errors.As(err, &result):
		return machine.Transient(result.Result)
	case errors.As(err, &exit):
		return exit.During != "initialize"
	case errors.As(err, &start):
		return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.ENOMEM) ||
			errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ETXTBSY)
	}
	return errors.As(err, &timeout) || errors.Is(err, session.ErrTransportClosed)
}

// RetryAfter returns how long to wait before the next attempt: what the agent said, or the
// time until an open breaker of the runtime probes. It reports false if neither is known.
func RetryAfter(err error) (time.Duration, bool) {
	var breaker *session.BreakerOpenError
	if errors.As(err, &breaker) {
		return breaker.RetryAfter, breaker.RetryAfter > 0
	}
	var result *ResultError
	if errors.As(err, &result) && result.RetryAfter > 0 {
		return result.RetryAfter, true
	}
	return 0, false
}
