package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

func TestBadPatternsAreFoundBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		o := w.options()
		for _, pattern := range []string{"Bash|(", "[", "*Bash", "*", "", "^(?!Read).*$"} { // the last is JavaScript's alone
			o.Hooks = append(o.Hooks, sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
				return sdk.PreToolUseOutput{}, nil
			}, sdk.Match(pattern)))
		}
		all := sdk.ConfigErrors(sdk.NewClient(o).Connect(w.Context()))
		require.Len(w, all, 4)
		for i, at := range []string{"0", "1", "2", "5"} {
			assert.Contains(w, all[i].Option, "Hooks["+at+"].Match")
		}
	})
}

// A hook that only watches may fail; one that says so blocks by failing.
func TestOnFailure(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		options []sdk.HookOption
		runs    bool
	}{
		"a gate":            {nil, false},
		"a gate, in words":  {[]sdk.HookOption{sdk.OnFailure(session.BlockOnFailure)}, false},
		"one that watches":  {[]sdk.HookOption{sdk.OnFailure(session.ContinueOnFailure)}, true},
		"the last one wins": {[]sdk.HookOption{sdk.OnFailure(session.ContinueOnFailure), sdk.OnFailure(session.BlockOnFailure)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(w *world) {
				o := w.options(bash())
				o.AllowedTools = []string{"Bash"}
				o.Hooks = []sdk.Hook{sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
					return sdk.PreToolUseOutput{}, errors.New("the metrics are down")
				}, tc.options...)}
				l := record(o)
				all, err := sdk.Collect(sdk.Query(w.Context(), "hi", o))
				require.NoError(w, err)
				_, failed := toolResult(w, all)
				assert.Equal(w, tc.runs, !failed)
				assert.Len(w, w.failures(l), 1, "the operator is told in any case")
			})
		})
	}
	in(t, func(w *world) {
		hook := sdk.OnStop(func(context.Context, *protocol.StopInput) (sdk.FeedbackOutput, error) {
			return sdk.FeedbackOutput{}, nil
		}, sdk.OnFailure("perhaps"))
		o := w.options()
		o.Hooks = []sdk.Hook{hook}
		require.ErrorContains(w, sdk.NewClient(o).Connect(w.Context()), `"perhaps" is not known`)
		o = w.script(scripted.Script{Dialect: agent.Qoder})
		o.Auth, o.Hooks = sdk.QoderCLIAuth(), []sdk.Hook{hook}
		require.ErrorContains(w, sdk.NewClient(o).Connect(w.Context()), "Hooks[0].OnFailure")
	})
}

// An output that an agent might take for no decision is a failure of the gate.
func TestGatesWhoseOutputIsNone(t *testing.T) {
	t.Parallel()
	typed := func(out sdk.PreToolUseOutput) sdk.Hook {
		return sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) { return out, nil })
	}
	raw := func(out string) sdk.Hook {
		return sdk.OnHookEvent("PreToolUse", func(context.Context, *session.HookCall) (json.RawMessage, error) { return json.RawMessage(out), nil })
	}
	for name, hook := range map[string]sdk.Hook{
		"decision":     typed(sdk.PreToolUseOutput{PermissionDecision: "Deny"}),
		"no object":    typed(sdk.PreToolUseOutput{PermissionDecision: protocol.HookAllow, UpdatedInput: json.RawMessage("42")}),
		"empty":        typed(sdk.PreToolUseOutput{UpdatedInput: json.RawMessage{}}),
		"broken":       typed(sdk.PreToolUseOutput{UpdatedInput: json.RawMessage("{")}),
		"raw no JSON":  raw("deny"),
		"raw empty":    raw(""),
		"raw text":     raw(`"deny"`),
		"raw unclosed": raw(`{"decision":"block"`),
		"raw null":     raw("null"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(w *world) {
				for _, dialect := range []agent.Dialect{agent.Claude, agent.Qoder} {
					o := w.script(scripted.Script{Dialect: dialect, Turns: []scripted.Turn{bash()}})
					if dialect == agent.Qoder {
						o.Auth = sdk.QoderCLIAuth()
					}
					o.AllowedTools, o.Hooks = []string{"Bash"}, []sdk.Hook{hook}
					l := record(o)
					all, err := sdk.Collect(sdk.Query(w.Context(), "hi", o))
					require.NoError(w, err)
					_, denied := toolResult(w, all)
					assert.True(w, denied, "%v", dialect)
					assert.Len(w, w.failures(l), 1, "%v", dialect)
				}
			})
		})
	}
}

// A rule that a hook grants is kept as one that CanUseTool grants is.
func TestAHookGrantsARule(t *testing.T) {
	t.Parallel()
	out := sdk.AllowAlways(&sdk.ToolPermissionRequest{PermissionSuggestions: []protocol.PermissionUpdate{{Type: protocol.SetMode, Mode: sdk.ModeAcceptEdits}}})
	wire, err := json.Marshal(out)
	require.NoError(t, err)
	assert.Contains(t, string(wire), `"destination":"session"`)
	assert.Empty(t, out.UpdatedPermissions[0].Destination)
}

// Hooks that the agent never calls are reported, in an event and in the list.
func TestWarningsOfHooks(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		o := w.options()
		o.Policy = &sdk.Policy{} // its hook takes no place from theirs
		o.Hooks = []sdk.Hook{
			sdk.OnSetup(func(context.Context, *protocol.SetupInput) (sdk.ContextOutput, error) {
				return sdk.ContextOutput{}, nil
			}),
			sdk.OnSessionEnd(func(context.Context, *protocol.SessionEndInput) (sdk.HookOutput, error) { return sdk.HookOutput{}, nil }),
			sdk.OnSessionStart(func(context.Context, *protocol.SessionStartInput) (sdk.SessionStartOutput, error) {
				return sdk.SessionStartOutput{}, nil
			}),
			sdk.OnStop(func(context.Context, *protocol.StopInput) (sdk.FeedbackOutput, error) {
				return sdk.FeedbackOutput{}, nil
			}),
			sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
				return sdk.PreToolUseOutput{}, nil
			}, sdk.Match("Bash|Ba")),
		}
		c := w.connect(o)
		var warned []string
		for _, warning := range c.Warnings() {
			if strings.HasPrefix(warning.Option, "Hooks[") {
				warned = append(warned, warning.Option)
			}
		}
		assert.ElementsMatch(w, []string{"Hooks[0]", "Hooks[1]", "Hooks[2]", "Hooks[4].Match"}, warned)
		w.close(c)
	})
}
