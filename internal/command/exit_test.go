package command

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

func TestOutcome(t *testing.T) {
	t.Parallel()
	good, bad := &sdk.ResultMessage{Subtype: "success"}, &sdk.ResultMessage{Subtype: "error_max_turns"}
	left := &session.LeftoverError{Err: errors.New("one is stuck")}
	died := &sdk.ExitError{During: "a turn"}
	for _, c := range []struct {
		o    outcome
		code int
		why  string
	}{
		{outcome{result: good}, exitOK, ""},
		{outcome{result: good, closed: left}, exitLeftover, left.Error()},
		{outcome{result: bad, closed: left}, exitResult, "the run ended in an error (error_max_turns)"},
		{outcome{err: died, closed: left}, exitDied, died.Error()},
		{outcome{err: died, result: good}, exitDied, died.Error()},
		{outcome{}, exitResult, "the agent gave no result"},
		{outcome{err: session.ErrNotRun}, exitResult, session.ErrNotRun.Error()},
		{outcome{err: &startFailure{died}}, exitStart, died.Error()},
		{outcome{err: errors.Join(errTimeLimit, &startFailure{died})}, exitTimeout, errTimeLimit.Error()},
		{outcome{err: &outputError{syscall.EPIPE}, result: good}, 141, "write the output: broken pipe"},
		{outcome{err: &outputError{syscall.ENOSPC}, result: good}, exitOutput, "write the output: no space left on device"},
		{outcome{signal: os.Interrupt, result: good}, 130, "interrupted"},
		{outcome{signal: syscall.SIGTERM, err: died}, 143, "ended by a signal: terminated"},
		{outcome{signal: syscall.SIGHUP}, 129, "ended by a signal: hangup"},
	} {
		assert.Equal(t, c.code, c.o.code(), c.why)
		if c.code != exitOK {
			assert.Equal(t, c.why, c.o.why())
		}
	}
}
