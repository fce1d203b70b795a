package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

func TestRetryable(t *testing.T) {
	t.Parallel()
	failed := func(status int, kind string) *sdk.ResultError {
		return &sdk.ResultError{Result: &sdk.ResultMessage{IsError: true, APIErrorStatus: status, APIErrorType: kind}}
	}
	api := func(kind string) *sdk.ResultError {
		return &sdk.ResultError{Result: &sdk.ResultMessage{Subtype: "success", IsError: true, TerminalReason: "api_error", APIError: kind}}
	}
	refused := failed(403, "")
	refused.Result.TerminalReason = "api_error"
	for _, tc := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{api(""), true},
		{api("connection_failed"), true},
		{api("stream_idle_timeout"), true},
		{api("usage_limit_reached"), false},
		{api("kind_of_next_week"), false},
		{refused, false},
		{failed(401, ""), false},
		{failed(413, ""), false},
		{errors.New("whatever"), false},
		{context.Canceled, false},
		{fmt.Errorf("%w: %w", context.Canceled, &sdk.ExitError{During: "a turn"}), false},
		{&sdk.ConfigError{}, false},
		{sdk.ErrBusy, false},
		{sdk.ErrClosed, false},
		{session.ErrDraining, false},
		{session.ErrConsumerStalled, false},
		{session.ErrTransportClosed, true},
		{&sdk.TimeoutError{}, true},
		{&sdk.ControlError{}, false},
		{&sdk.ControlError{Retryable: true}, true},
		{&sdk.ExitError{During: "a turn"}, true},
		{&sdk.ExitError{During: "idle"}, true},
		{&sdk.ExitError{During: "initialize"}, false},
		{&sdk.AuthError{Err: &sdk.ExitError{During: "a turn"}}, false},
		{&sdk.StartError{Err: syscall.ENOENT}, false},
		{&sdk.StartError{Err: syscall.EAGAIN}, true},
		{&session.StructuredOutputError{Err: errors.New("x")}, true},
		{failed(0, ""), false},
		{failed(400, ""), false},
		{failed(429, ""), true},
		{failed(529, ""), true},
		{failed(0, "overloaded_error"), true},
		{failed(0, "invalid_request_error"), false},
		{fmt.Errorf("job 7: %w", failed(500, "")), true},
		{&session.RetryLimitError{Status: 529}, true},
		{&session.RetryLimitError{Status: 403}, false},
		{&session.BreakerOpenError{Kind: session.BreakerAgent, Name: "claude"}, true},
	} {
		assert.Equal(t, tc.want, sdk.Retryable(tc.err), "%v", tc.err)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	_, ok := sdk.RetryAfter(&sdk.ResultError{Result: &sdk.ResultMessage{}})
	assert.False(t, ok)
	_, ok = sdk.RetryAfter(nil)
	assert.False(t, ok)
	_, ok = sdk.RetryAfter(&session.BreakerOpenError{})
	assert.False(t, ok)
	after, ok := sdk.RetryAfter(&session.BreakerOpenError{RetryAfter: time.Second})
	assert.True(t, ok)
	assert.Equal(t, time.Second, after)
	after, ok = sdk.RetryAfter(fmt.Errorf("job: %w", &sdk.ResultError{RetryAfter: time.Minute}))
	assert.True(t, ok)
	assert.Equal(t, time.Minute, after)
}

func TestResultErrorsSayWhy(t *testing.T) {
	t.Parallel()
	assert.EqualError(t, &sdk.ResultError{Result: &sdk.ResultMessage{Subtype: "error_max_turns"}}, "the run ended in an error (error_max_turns)")
	assert.EqualError(t, &sdk.ResultError{Result: &sdk.ResultMessage{Subtype: "success"}}, "the run ended in an error")
	interrupted := &sdk.ResultMessage{
		Subtype: "error_during_execution", TerminalReason: "aborted_tools", IsError: true,
		Errors: []string{"[ede_diagnostic] result_type=user", "[session_crash] odd"},
	}
	assert.EqualError(t, &sdk.ResultError{Result: interrupted}, "the run ended in an error (error_during_execution, aborted_tools)")
	assert.Empty(t, interrupted.Text())
	interrupted.Errors = append(interrupted.Errors, "it broke")
	assert.Equal(t, "it broke", interrupted.Text(), "what is for users stays")
}

func TestStartErrorHidesExtraArgs(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "claude")
	require.NoError(t, os.WriteFile(program, []byte("no program"), 0o700))
	_, err := sdk.Run(context.Background(), "hi", &sdk.Options{
		Backend: sdk.Claude(sdk.ClaudeConfig{}), PathToExecutable: program, Model: "opus",
		ExtraArgs: map[string]sdk.Opt[string]{"acme": sdk.Some("s3cret"), "acme-key": sdk.Some("-s3cret")},
	})
	var start *sdk.StartError
	require.ErrorAs(t, err, &start)
	assert.Contains(t, start.Argv, "--acme")
	assert.Contains(t, start.Argv, "--acme-key=***")
	assert.Contains(t, start.Argv, "--model=opus")
	assert.NotContains(t, fmt.Sprintf("%v %+v %q", err, start, start.Argv), "s3cret")
}
