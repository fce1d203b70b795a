package qoder_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

func TestHooksThatQoderDoesNotHave(t *testing.T) {
	t.Parallel()
	has := 0
	for _, event := range append(protocol.HookEvents(), "NextWeek") {
		warnings, err := qoder.New().Validate(&dialect.Input{Options: session.Options{
			Auth: &session.Auth{Type: session.AuthQoderCLI},
		}, Facts: dialect.Facts{Registrations: []dialect.HookRegistration{{Event: event, CallbackIDs: []string{"hook_0"}}}}})
		require.NoError(t, err, event)
		switch {
		case len(warnings) == 0:
			has++
		case event == "NextWeek":
			assert.Contains(t, warnings[0].String(), "does not know")
		default:
			assert.Contains(t, warnings[0].String(), "never called", event)
		}
	}
	assert.Equal(t, 18, has, "events of the Qoder SDK 1.0.39")
}

func TestOnFailureIsClaudes(t *testing.T) {
	t.Parallel()
	_, err := qoder.New().Validate(&dialect.Input{Options: session.Options{
		Auth: &session.Auth{Type: session.AuthQoderCLI},
	}, Facts: dialect.Facts{Registrations: []dialect.HookRegistration{{Event: protocol.HookPreToolUse, OnFailure: session.ContinueOnFailure, CallbackIDs: []string{"hook_0"}}}}})
	require.ErrorContains(t, err, "Hooks[0].OnFailure")
}
