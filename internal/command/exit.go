package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// Exit codes. They are part of the command's contract; exitCodes says what they
// mean to users.
const (
	exitOK       = 0
	exitResult   = 1
	exitUsage    = 2
	exitStart    = 3
	exitDied     = 4
	exitTimeout  = 5
	exitLeftover = 6
	exitOutput   = 7
	exitSignal   = 128 // plus the signal's number
	exitPipe     = exitSignal + int(syscall.SIGPIPE)
)

const exitCodes = `Exit codes:
    0  success
    1  the agent's result is an error, or the agent has sent none
    2  a mistake in the arguments; nothing was started
    3  the agent could not start
    4  the agent died, or the session failed
    5  the run took longer than --timeout
    6  the run succeeded, but the agent had to be killed, or left processes that could not be killed
    7  the output could not be written
  130  interrupted by Ctrl-C; 143 by SIGTERM, 129 by SIGHUP
  141  the reader of stdout went away
`

// errTimeLimit is why a context ended at --timeout.
var errTimeLimit = errors.New("the time limit ran out (--timeout)")

// usageError is a mistake in the arguments.
type usageError struct{ problem, fix string }

func (e *usageError) Error() string {
	if e.fix == "" {
		return e.problem
	}
	return e.problem + "; " + e.fix
}

// startFailure is an error from before the agent was ready.
type startFailure struct{ err error }

func (e *startFailure) Error() string { return e.err.Error() }
func (e *startFailure) Unwrap() error { return e.err }

// outputError is an error of stdout.
type outputError struct{ err error }

func (e *outputError) Error() string { return "write the output: " + e.err.Error() }
func (e *outputError) Unwrap() error { return e.err }

// outcome is how a run ended.
type outcome struct {
	signal os.Signal          // the first one that arrived, nil if none did
	err    error              // of the run itself
	closed error              // of the session's end
	result *sdk.ResultMessage // the last one, or nil

	// conversation says that each turn has reported its own failure; failed, that
	// the last one did.
	conversation, failed bool

	settings *settings // for the names of options
}

// code is the exit code. A signal comes first: after Ctrl-C the shell must not run the
// next command of the line.
func (o outcome) code() int {
	if number, ok := o.signal.(syscall.Signal); ok {
		return exitSignal + int(number)
	}
	var usage *usageError
	var start *startFailure
	var output *outputError
	switch {
	case errors.As(o.err, &usage), len(sdk.ConfigErrors(o.err)) > 0:
		return exitUsage
	case errors.As(o.err, &output) && errors.Is(o.err, syscall.EPIPE):
		return exitPipe
	case output != nil:
		return exitOutput
	case errors.Is(o.err, errTimeLimit):
		return exitTimeout
	case errors.As(o.err, &start):
		return exitStart
	case errors.Is(o.err, session.ErrNotRun):
		return exitResult
	case o.err != nil:
		return exitDied
	case o.failed, !o.conversation && (o.result == nil || o.result.Failed()):
		return exitResult
	case o.closed != nil:
		return exitLeftover
	}
	return exitOK
}

// reported says that the reason for the exit code is on stderr already.
func (o outcome) reported() bool { return o.failed && o.err == nil && o.signal == nil }

// why says what the exit code is about, and what to do if that is known.
func (o outcome) why() string { return o.settings.advised(o.reason(), o.err, o.result) }

func (o outcome) reason() string {
	switch code := o.code(); {
	case o.signal == os.Interrupt:
		return "interrupted"
	case o.signal != nil:
		return fmt.Sprintf("ended by a signal: %v", o.signal)
	case code == exitUsage && len(sdk.ConfigErrors(o.err)) > 0:
		return o.settings.inTerms(o.err.Error())
	case code == exitTimeout:
		return errTimeLimit.Error()
	case o.err != nil:
		return o.err.Error()
	case code == exitLeftover:
		return o.closed.Error()
	case o.result == nil:
		return "the agent gave no result"
	}
	return (&sdk.ResultError{Result: o.result}).Error()
}

// limited adds errTimeLimit to err if ctx ended by --timeout.
func limited(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errTimeLimit) && !errors.Is(err, errTimeLimit) {
		return errors.Join(errTimeLimit, err)
	}
	return err
}
