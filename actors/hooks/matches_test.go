package hooks_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/hooks"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// TestMatchesTheSubjectOfAnEvent: each event has one member that patterns are compared with,
// and events without one match every pattern.
func TestMatchesTheSubjectOfAnEvent(t *testing.T) {
	t.Parallel()
	cases := map[protocol.HookEvent]string{
		protocol.HookPreToolUse: "tool_name", protocol.HookPermissionRequest: "tool_name",
		protocol.HookUserPromptExpansion: "command_name",
		protocol.HookSessionStart:        "source", protocol.HookConfigChange: "source",
		protocol.HookPreModelSwitch: "to_model",
		protocol.HookSetup:          "trigger", protocol.HookPreCompact: "trigger",
		protocol.HookNotification:       "notification_type",
		protocol.HookSessionEnd:         "reason",
		protocol.HookStopFailure:        "error",
		protocol.HookSubagentStart:      "agent_type",
		protocol.HookElicitation:        "mcp_server_name",
		protocol.HookInstructionsLoaded: "load_reason",
		protocol.HookUserPromptSubmit:   "",
	}
	for event, key := range cases {
		input, err := json.Marshal(map[string]string{key: "one", "other": "two"})
		require.NoError(t, err)
		for pattern, want := range map[string]bool{"": true, "*": true, "one": true, "none|one": true, "o.e": true, "two": key == "", "t.o": key == ""} {
			got, err := hooks.Matches(event, pattern, input)
			require.NoError(t, err)
			assert.Equal(t, want, got, "%s, pattern %q", event, pattern)
		}
	}
	_, err := hooks.Matches(protocol.HookPreToolUse, "(", nil)
	require.ErrorAs(t, err, new(*session.PatternError))
}
