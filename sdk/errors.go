package sdk

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// Errors, to be matched with errors.As.
type (
	// ConfigError is an option that cannot work. All of them are found before
	// anything starts and come joined; see [ConfigErrors].
	ConfigError = session.ConfigError
	// StartError says that the agent could not be started.
	StartError = session.StartError
	// ExitError says that the agent ended when it should not have.
	ExitError = session.ExitError
	// GatesOffError says that the agent calls no hooks, so that the gates of the
	// session are open. The agent was killed before it could run a tool.
	GatesOffError = session.GatesOffError
	// AuthError says that the agent's login is missing or has expired. It wraps
	// an *[ExitError] or a *[ResultError].
	AuthError = session.AuthError
	// KilledError says that the agent did not end in order and was killed, and that
	// nothing is left of it. What it had not written to its transcript is lost.
	KilledError = session.KilledError
	// ResultError says that a run ended in a result that is an error: the model's
	// API failed, a limit was reached, the turn was interrupted.
	ResultError = session.ResultError
	// StructuredOutputError says that a run has no answer of the shape that was
	// asked for. Its Result.StructuredOutput is the answer that came instead.
	StructuredOutputError = session.StructuredOutputError
	// LeftoverError names the processes of an agent that did not stop.
	LeftoverError = session.LeftoverError
	// WritesLostError says that the agent's disk was full, so that part of the
	// transcript was not written. [Client.Close], [Run] and [Query] return it, and a
	// [WarningEvent] has its text.
	WritesLostError = session.WritesLostError
	// ControlError is the agent's refusal of a request.
	ControlError = session.ControlError
	// UnfinishedError says that a context ended before the [Run], [RunAs], [Query] or
	// [Client.Connect] that it was for: what was waited for, and how far the run had
	// come. It matches context.Canceled or context.DeadlineExceeded, and the context's
	// cause.
	UnfinishedError = session.UnfinishedError
	// Wait is something that a session waits for, in an [UnfinishedError].
	Wait = session.Wait
	// RunningTool is the call of a tool that has no answer yet, in an
	// [UnfinishedError].
	RunningTool = session.RunningTool
	// TimeoutError says which wait ran out, and whose limit it was. It matches
	// context.DeadlineExceeded.
	TimeoutError = session.TimeoutError
	// UnsupportedCapabilityError is a request that this agent, or this release
	// of it, does not serve. Nothing was sent.
	UnsupportedCapabilityError = session.UnsupportedCapabilityError
	// ProtocolVersionError says that the agent speaks another major version of
	// the protocol.
	ProtocolVersionError = session.ProtocolVersionError
	// ProtocolError describes a line of the agent that is no frame. The session
	// goes on; it comes in a [NoiseEvent].
	ProtocolError = protocol.FrameError
	// UnreadableResultError says that a turn's result could not be read, and that
	// its text is lost.
	UnreadableResultError = protocol.UnreadableResultError
	// OversizeError says that a line was above MaxLine; it comes in an
	// [OversizeMessage].
	OversizeError = protocol.OversizeError
	// EchoError says that the agent's stdin comes back on its stdout: it runs
	// behind a terminal.
	EchoError = session.EchoError
	// ModelPolicyTimeoutError says that ResolveModel took too long. The agent's
	// call fails; it comes in a [CallbackFailedEvent].
	ModelPolicyTimeoutError = session.ModelPolicyTimeoutError
	// PanicError says that a callback of the program, or an actor, panicked. It
	// comes in a [CallbackFailedEvent] or an [ActorFailedEvent], and as the reason
	// of a session that failed.
	PanicError = session.PanicError
	// SupervisorError says that a session failed because its actors crashed too
	// often. It matches the reasons of the crashes.
	SupervisorError = supervisor.Failure
)

// Errors, to be matched with errors.Is.
var (
	// ErrBusy says that somebody else is reading the session's messages.
	ErrBusy = session.ErrBusy
	// ErrClaimTaken says that an earlier claim, whose answer nobody waited for,
	// has made a session of the spare.
	ErrClaimTaken = errors.New("an earlier claim was taken, and its answer is lost; close the client and start the session with NewClient")
	// ErrClaimUnsure says that nobody waited for the answer to a claim.
	ErrClaimUnsure = errors.New("the claim may have been taken; claim again to find out, or close the client")
	// ErrClosed says that the session was closed.
	ErrClosed = session.ErrClosed
	// ErrConsumerStalled says that an answer lies behind more unread messages
	// than may be held, or that nobody read for as long as Limits.Consumer says.
	ErrConsumerStalled = session.ErrConsumerStalled
	// ErrNoRoom says that the agent does not read what is written to it, and that
	// no more is held for it.
	ErrNoRoom = session.ErrNoRoom
	// ErrNotConnected says that [Client.Connect] was not called, or failed.
	ErrNotConnected = errors.New("the client is not connected; call Connect first")
	// ErrNotRun says that a user message ended without a result: it was
	// cancelled while it was queued, or the agent had seen its uuid before.
	ErrNotRun = session.ErrNotRun
	// ErrAnswerSkipped says that the answer to a request was a line longer than
	// Options.MaxLine.
	ErrAnswerSkipped = session.ErrAnswerSkipped
	// ErrResultSkipped says that a turn's result was a line longer than
	// Options.MaxLine.
	ErrResultSkipped = session.ErrResultSkipped
	// ErrAnswerBroken and ErrResultBroken say the same of a line that is no JSON.
	ErrAnswerBroken = session.ErrAnswerBroken
	ErrResultBroken = session.ErrResultBroken
	// ErrShutdown says that the runtime takes no new sessions.
	ErrShutdown = session.ErrShutdown
	// ErrTooLarge says that a message does not fit into one line for the agent.
	ErrTooLarge = session.ErrTooLarge
	// ErrTransportClosed says that the agent cannot be written to any more.
	ErrTransportClosed = session.ErrTransportClosed
)

// ConfigErrors returns every *[ConfigError] in err, in the order in which they
// were found.
func ConfigErrors(err error) []*ConfigError { return session.ConfigErrors(err) }

var errNoStructuredOutput = errors.New("the model gave none")

// Retryable reports whether the same call may succeed when it is made again: the
// model's API was overloaded, could not be reached, timed out or gave a malformed
// answer; the agent died or did not answer; the model's answer had the wrong
// shape. A retry may repeat side effects.
func Retryable(err error) bool {
	var (
		control *ControlError
		result  *ResultError
		auth    *AuthError
		exit    *ExitError
		start   *StartError
		timeout *TimeoutError
		shape   *StructuredOutputError
	)
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, ErrClosed), errors.As(err, &auth),
		errors.Is(err, ErrConsumerStalled): // nobody read: trying again changes nothing
		return false
	case errors.As(err, &control):
		return control.Retryable
	case errors.As(err, &shape):
		return true
	case errors.As(err, &result):
		return transient(result.Result)
	case errors.As(err, &exit):
		return exit.During != "initialize"
	case errors.As(err, &start):
		return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.ENOMEM) ||
			errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ETXTBSY)
	}
	return errors.As(err, &timeout) || errors.Is(err, ErrTransportClosed)
}

// transient reports whether a failed result is a passing fault of the model's
// API: overload, a lost connection, a time-out, an answer that is malformed. A
// kind of failure that is not known here counts as permanent.
func transient(r *ResultMessage) bool {
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

// RetryAfter is how long to wait before another try, if the agent said so.
func RetryAfter(err error) (time.Duration, bool) {
	var result *ResultError
	if errors.As(err, &result) && result.RetryAfter > 0 {
		return result.RetryAfter, true
	}
	return 0, false
}

// stoppedBy reports whether err is the end of ctx.
func stoppedBy(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, context.Cause(ctx))
}

// ended makes an error of an ended ctx match context.Canceled or
// context.DeadlineExceeded, whatever cause the ctx was given.
func ended(ctx context.Context, err error) error {
	if !stoppedBy(ctx, err) || errors.Is(err, ctx.Err()) {
		return err
	}
	return fmt.Errorf("%w: %w", ctx.Err(), err)
}
