package hooks_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// The agent does not wait for an async hook: a decision of one would come after
// the call has run.
func TestAnAsyncDecisionIsAFailure(t *testing.T) {
	t.Parallel()
	answered := func(t *testing.T, event protocol.HookEvent, out string) (string, []error) {
		t.Helper()
		r := actor(t, []session.Hook{{Event: event, Func: func(context.Context, *session.HookCall) (json.RawMessage, error) {
			return json.RawMessage(out), nil
		}}})
		r.Ask(fire("hook_0", `{}`), 0)
		return r.Answer(), r.Failed
	}
	for name, c := range map[string]struct {
		event protocol.HookEvent
		out   string
	}{
		"deny":                {protocol.HookPreToolUse, `{"async":true,"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny"}}`},
		"deny, another order": {protocol.HookPreToolUse, `{"hookSpecificOutput":{"permissionDecision":"deny"},"async":true}`},
		"deny, escaped keys":  {protocol.HookPreToolUse, `{"\u0061sync":true,"hookSpecificOutput":{"permission\u0044ecision":"d\u0065ny"}}`},
		"deny, said twice":    {protocol.HookPreToolUse, `{"async":false,"async":true,"hookSpecificOutput":{"permissionDecision":"deny"},"hookSpecificOutput":{}}`},
		"async is no boolean": {protocol.HookPreToolUse, `{"async":1,"hookSpecificOutput":{"permissionDecision":"deny"}}`},
		"ask":                 {protocol.HookPreToolUse, `{"async":true,"hookSpecificOutput":{"permissionDecision":"ask"}}`},
		"another input":       {protocol.HookPreToolUse, `{"async":true,"hookSpecificOutput":{"updatedInput":{"command":"ls"}}}`},
		"block":               {protocol.HookPreToolUse, `{"async":true,"decision":"block"}`},
		"the end of the turn": {protocol.HookPreToolUse, `{"async":true,"continue":false}`},
		"a person's decision": {protocol.HookPermissionRequest, `{"async":true,"hookSpecificOutput":{"decision":{"behavior":"deny"}}}`},
		"a blocked prompt":    {protocol.HookUserPromptSubmit, `{"async":true,"decision":"block","reason":"r"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer, failed := answered(t, c.event, c.out)
			require.Len(t, failed, 1)
			require.ErrorContains(t, failed[0], "async")
			assert.NotContains(t, answer, `"async"`)
			assert.Contains(t, answer, "the callback failed")
			if c.event == protocol.HookUserPromptSubmit {
				assert.Contains(t, answer, "block")
			} else {
				assert.Contains(t, answer, "deny")
			}
		})
	}
	for name, out := range map[string]string{
		"async alone":       `{"async":true,"asyncTimeout":1000}`,
		"async with allow":  `{"async":true,"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}`,
		"a decision":        `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny"}}`,
		"a decision, waits": `{"async":false,"decision":"block"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer, failed := answered(t, protocol.HookPreToolUse, out)
			assert.Empty(t, failed)
			assert.Equal(t, out, answer)
		})
	}
}
