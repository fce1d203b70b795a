package sdk

import (
	"context"
	"errors"
	"fmt"

	"github.com/agent-troupe/troupe/actors/ledger"
	"github.com/agent-troupe/troupe/actors/transport"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/runtime"
)

// Errors, to be matched with errors.As.
type (
	// ConfigError is an option that cannot work. All of them are found before
	// anything starts and come joined; see [ConfigErrors].
	ConfigError = dialect.ConfigError
	// StartError says that the agent could not be started.
	StartError = transport.StartError
	// ExitError says that the agent ended when it should not have.
	ExitError = transport.ExitError
	// LeftoverError names the processes of an agent that did not stop.
	LeftoverError = transport.LeftoverError
	// ControlError is the agent's refusal of a request.
	ControlError = ledger.ControlError
	// TimeoutError says which wait ran out, and whose limit it was. It matches
	// context.DeadlineExceeded.
	TimeoutError = kernel.TimeoutError
	// UnsupportedCapabilityError is a request that this agent, or this release
	// of it, does not serve. Nothing was sent.
	UnsupportedCapabilityError = dialect.UnsupportedCapabilityError
)

// Errors, to be matched with errors.Is.
var (
	// ErrBusy says that somebody else is reading the session's messages.
	ErrBusy = ledger.ErrBusy
	// ErrClosed says that the session was closed.
	ErrClosed = ledger.ErrClosed
	// ErrConsumerStalled says that nobody read while the agent wrote past the
	// hard bound.
	ErrConsumerStalled = ledger.ErrConsumerStalled
	// ErrNotConnected says that [Client.Connect] was not called, or failed.
	ErrNotConnected = errors.New("the client is not connected; call Connect first")
	// ErrNotRun says that a user message ended without a result: it was
	// cancelled while it was queued, or the agent had seen its uuid before.
	ErrNotRun = ledger.ErrNotRun
	// ErrShutdown says that the runtime takes no new sessions.
	ErrShutdown = runtime.ErrShutdown
	// ErrTransportClosed says that the agent cannot be written to any more.
	ErrTransportClosed = ledger.ErrTransportClosed
)

// ConfigErrors returns every *[ConfigError] in err, in the order in which they
// were found.
func ConfigErrors(err error) []*ConfigError { return dialect.ConfigErrors(err) }

// ResultError says that a run ended in a result that is an error: the model's
// API failed, a limit was reached, the turn was interrupted.
type ResultError struct {
	Result *ResultMessage // never nil
}

func (e *ResultError) Error() string {
	r := e.Result
	why := r.Subtype
	if r.Subtype == "success" { // an API error comes as one
		why = r.TerminalReason
	}
	if text := r.Text(); text != "" {
		return fmt.Sprintf("the run ended in an error (%s): %s", why, text)
	}
	return fmt.Sprintf("the run ended in an error (%s)", why)
}

// ended makes an error of an ended ctx match context.Canceled or
// context.DeadlineExceeded, whatever cause the ctx was given.
func ended(ctx context.Context, err error) error {
	end := ctx.Err()
	if err == nil || end == nil || errors.Is(err, end) || !errors.Is(err, context.Cause(ctx)) {
		return err
	}
	return fmt.Errorf("%w: %w", end, err)
}
