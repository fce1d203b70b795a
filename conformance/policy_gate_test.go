//go:build conformance

package conformance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// A policy that allows one command allows nothing else, whatever the agent would
// run by itself in its mode.
func TestPolicyAllowsOneCommand(t *testing.T) {
	t.Parallel()
	for _, mode := range []sdk.PermissionMode{sdk.ModeDefault, sdk.ModeAcceptEdits, sdk.ModeDontAsk, sdk.ModeBypassPermissions, sdk.ModePlan, sdk.ModeAuto} {
		answers := []string{""}
		if mode == sdk.ModeDefault || mode == sdk.ModeDontAsk || mode == sdk.ModeBypassPermissions { // package sdk's test takes all modes
			answers = append(answers, "deny", "allow")
		}
		for _, answer := range answers {
			t.Run(fmt.Sprintf("%s/%s", mode, answer), func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				require.NoError(t, os.WriteFile(r.at("go.mod"), []byte("module m\n"), 0o600))
				require.NoError(t, os.Mkdir(r.at(".git"), 0o700))
				a := &asker{}
				o := r.options()
				o.PermissionMode, o.AllowDangerouslySkipPermissions = mode, true
				o.OutputFormat = sdk.JSONSchema(json.RawMessage(`{"type":"object","properties":{"answer":{"type":"string"}}}`))
				o.Policy = &sdk.Policy{Allow: []string{"Bash(mkdir made)"}}
				switch answer {
				case "deny":
					o.CanUseTool = r.denyAll("a person says no")
				case "allow":
					o.CanUseTool = a.decide
				}
				calls := []modelapi.Block{
					shell("echo hi"), shell("cat go.mod"), shell("ps"), shell("git log"), shell("touch other"),
					modelapi.ToolUse("Read", modelapi.Args{"file_path": r.at("go.mod")}),
					modelapi.ToolUse("Write", modelapi.Args{"file_path": r.at("written"), "content": "x"}),
					modelapi.ToolUse("Write", modelapi.Args{"file_path": r.at(".git/config"), "content": "x"}),
					shell("cp go.mod .git/config"),
					modelapi.ToolUse("Agent", modelapi.Args{"description": "x", "prompt": "Do [[scn:bash]]", "subagent_type": "general-purpose", "run_in_background": false}),
				}
				steps := []modelapi.Step{modelapi.Say(shell("mkdir made"))}
				for _, call := range calls {
					steps = append(steps, modelapi.Say(call))
				}
				r.model.Script("gate", append(steps, modelapi.Say(modelapi.ToolUse("StructuredOutput", modelapi.Args{"answer": "42"})), modelapi.Say(modelapi.Text("done")))...)
				all, result := r.once(o, "go [[scn:gate]]")
				assert.JSONEq(t, `{"answer":"42"}`, string(result.StructuredOutput), "nobody has to allow the answer")
				if plans := mode == sdk.ModePlan; !plans && mode != sdk.ModeAuto { // these have a say in it
					assert.DirExists(t, r.at("made"))
				}
				if answer == "allow" && mode != sdk.ModeDontAsk {
					assert.GreaterOrEqual(t, len(a.since()), len(calls), "each call was asked about")
					return
				}
				assert.Empty(t, a.since())
				for _, name := range []string{"other", "written", ".git/config"} {
					assert.NoFileExists(t, r.at(name))
				}
				var results []*protocol.ToolResultBlock
				for _, m := range all {
					if m.Meta().ParentToolUseID == "" {
						results = append(results, sdk.ToolResults(m)...)
					}
				}
				require.Len(t, results, len(calls)+2)
				for i, call := range results[1 : 1+len(calls)] {
					assert.True(t, call.IsError, "%v: %s", calls[i], call.Content.Text())
				}
			})
		}
	}
}

// An ask rule asks where the agent would decide in spite of a hook that says ask.
func TestPolicyAsksAboutWhatIsDangerousInEveryMode(t *testing.T) {
	t.Parallel()
	for _, mode := range []sdk.PermissionMode{sdk.ModeDefault, sdk.ModeAcceptEdits, sdk.ModeBypassPermissions, sdk.ModePlan, sdk.ModeAuto} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			require.NoError(t, os.Mkdir(r.at(".git"), 0o700))
			asked := false
			o := r.options()
			o.PermissionMode, o.AllowDangerouslySkipPermissions = mode, true
			o.Policy = &sdk.Policy{Ask: []string{"Write"}, Default: policy.Agent}
			o.CanUseTool = func(_ context.Context, ask *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
				asked = true
				assert.Equal(t, "Write", ask.ToolName)
				return sdk.DenyAndStop("no"), nil
			}
			r.once(o, r.write(r.at(".git/config")))
			assert.True(t, asked)
			assert.NoFileExists(t, r.at(".git/config"))
		})
	}
}

// An input that a hook of the user's puts in place of the call's is held against
// the rules, also where the agent does not ask.
func TestPolicyAndChangedInputs(t *testing.T) {
	t.Parallel()
	change := func(o *sdk.Options) {
		o.Hooks = []sdk.Hook{pre(sdk.PreToolUseOutput{UpdatedInput: input(t, "touch made")})}
	}
	for name, set := range map[string]func(*sdk.Options){
		"no decision": change,
		"no decision, AllowedTools": func(o *sdk.Options) {
			change(o)
			o.AllowedTools = []string{"Bash"}
		},
		"no decision, bypassPermissions": func(o *sdk.Options) {
			change(o)
			o.PermissionMode, o.AllowDangerouslySkipPermissions = sdk.ModeBypassPermissions, true
		},
		"no decision, acceptEdits": func(o *sdk.Options) {
			change(o)
			o.PermissionMode = sdk.ModeAcceptEdits
		},
		"allow": func(o *sdk.Options) {
			o.Hooks = []sdk.Hook{pre(sdk.PreToolUseOutput{PermissionDecision: protocol.HookAllow, UpdatedInput: input(t, "touch made")})}
		},
		"a PermissionRequest hook": func(o *sdk.Options) {
			o.Hooks = []sdk.Hook{sdk.OnPermissionRequest(func(context.Context, *protocol.PermissionRequestInput) (sdk.PermissionRequestOutput, error) {
				allow := sdk.AllowInput(input(t, "touch made"))
				return sdk.PermissionRequestOutput{Decision: &allow}, nil
			})}
		},
		"a PermissionRequest hook before the callback": func(o *sdk.Options) {
			o.CanUseTool = func(ctx context.Context, _ *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
				<-ctx.Done()
				return sdk.Deny("too late"), nil
			}
			o.Hooks = []sdk.Hook{sdk.OnPermissionRequest(func(context.Context, *protocol.PermissionRequestInput) (sdk.PermissionRequestOutput, error) {
				allow := sdk.AllowInput(input(t, "touch made"))
				return sdk.PermissionRequestOutput{Decision: &allow}, nil
			})}
		},
		"CanUseTool": func(o *sdk.Options) {
			o.CanUseTool = func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
				return sdk.AllowInput(input(t, "touch made")), nil
			}
		},
		"CanUseTool, keys that differ in case": func(o *sdk.Options) {
			o.CanUseTool = func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
				return sdk.AllowInput(json.RawMessage(`{"Command":"ls","command":"touch made","description":"x"}`)), nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			o := r.options()
			o.Policy = &sdk.Policy{Deny: []string{"Bash(touch:*)"}, Default: policy.Agent}
			set(o)
			_, result := r.once(o, r.run("mkdir dir"))
			assert.NoFileExists(t, r.at("made"))
			assert.NoDirExists(t, r.at("dir"))
			assert.Len(t, result.PermissionDenials, 1)
		})
	}
}
