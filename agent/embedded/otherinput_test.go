package embedded_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// A deny rule wins also over a hook and an answer that allow a call with another input.
func TestADenyRuleSeesAnotherInput(t *testing.T) {
	t.Parallel()
	touch := json.RawMessage(`{"command":"touch made"}`)
	hook := func(d protocol.HookPermission) []sdk.Hook {
		return []sdk.Hook{sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
			return sdk.PreToolUseOutput{PermissionDecision: d, UpdatedInput: touch}, nil
		})}
	}
	answer := func(input json.RawMessage) sdk.CanUseTool {
		return func(_ context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			if input == nil {
				input = r.Input
			}
			return sdk.AllowInput(input), nil
		}
	}
	for name, set := range map[string]func(*sdk.Options){
		"a hook":              func(o *sdk.Options) { o.Hooks = hook(protocol.HookAllow) },
		"a hook, asked":       func(o *sdk.Options) { o.Hooks, o.CanUseTool = hook(protocol.HookAsk), answer(nil) },
		"a hook, no decision": func(o *sdk.Options) { o.Hooks, o.CanUseTool = hook(""), answer(nil) },
		"an answer":           func(o *sdk.Options) { o.CanUseTool = answer(touch) },
		"a hook of a question": func(o *sdk.Options) {
			o.Hooks = []sdk.Hook{sdk.OnPermissionRequest(func(context.Context, *protocol.PermissionRequestInput) (sdk.PermissionRequestOutput, error) {
				r := sdk.AllowInput(touch)
				return sdk.PermissionRequestOutput{Decision: &r}, nil
			})}
			o.CanUseTool = func(ctx context.Context, _ *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
				<-ctx.Done()
				return sdk.Deny("late"), nil
			}
		},
	} {
		for _, denied := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				_, o := started(t, modelapi.Say(modelapi.ToolUse("Bash", map[string]any{"command": "make it"})), modelapi.Say(modelapi.Text("done")))
				set(o)
				if denied {
					o.DisallowedTools = []string{"Bash(touch:*)"}
				}
				r := run(t, o)
				_, err := os.Stat(filepath.Join(o.Cwd, "made"))
				assert.Equal(t, denied, err != nil)
				assert.Equal(t, denied, len(r.PermissionDenials) == 1)
			})
		}
	}
}
