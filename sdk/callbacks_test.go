package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/parity"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// bash is a turn with one call of a tool that needs permission. Its result is
// the input that the gates left.
func bash() scripted.Turn {
	return turn(&scripted.ToolUse{
		Name: "Bash", Input: map[string]any{"command": "rm -rf ."}, Result: "ran ${input}",
	})
}

// toolResult is the result that the model got for the one call of a tool.
func toolResult(w *world, all []sdk.Message) (text string, isError bool) {
	w.Helper()
	for _, m := range all {
		for _, r := range sdk.ToolResults(m) {
			return r.Content.Text(), r.IsError
		}
	}
	w.Fatalf("no tool result among %v", kinds(all))
	return "", false
}

func TestPermission(t *testing.T) {
	t.Parallel()
	broken := errors.New("the secret of the house")
	for name, tc := range map[string]struct {
		decide sdk.CanUseTool
		told   string
		runs   bool
		fails  bool // the callback
	}{
		"allow": {func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			return sdk.Allow(), nil
		}, `ran {"command":"rm -rf ."}`, true, false},
		"allow another input": {func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			return sdk.AllowInput(json.RawMessage(`{"command":"ls"}`)), nil
		}, `ran {"command":"ls"}`, true, false},
		"deny": {func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			return sdk.Deny("not today"), nil
		}, "not today", false, false},
		"zero": {func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			return sdk.PermissionResult{}, nil
		}, "denied", false, false},
		"error": {func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			return sdk.Allow(), broken
		}, "", false, true},
		"panic": {func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			panic(broken)
		}, "", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(w *world) {
				o := w.options(bash())
				o.CanUseTool = tc.decide
				l := record(o)
				all, err := sdk.Collect(sdk.Query(w.Context(), "hi", o))
				require.NoError(w, err)
				told, failed := toolResult(w, all)
				assert.Equal(w, tc.runs, !failed)
				assert.Contains(w, told, tc.told)
				assert.NotContains(w, told, broken.Error(), "the error was shown to the model")
				if failures := w.failures(l); assert.Equal(w, tc.fails, len(failures) == 1) && tc.fails {
					require.ErrorIs(w, failures[0].Err, broken)
				}
			})
		})
	}
}

// An input that could not be made is not the one that the model wrote.
func TestPermissionForNoInput(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		for _, input := range []json.RawMessage{nil, {}, json.RawMessage("null"), json.RawMessage("[]"), json.RawMessage(`{"a":`)} {
			o := w.options(bash())
			o.CanUseTool = func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
				return sdk.AllowInput(input), nil
			}
			l := record(o)
			all, err := sdk.Collect(sdk.Query(w.Context(), "hi", o))
			require.NoError(w, err)
			_, denied := toolResult(w, all)
			assert.True(w, denied, "%q", input)
			assert.Len(w, w.failures(l), 1, "%q", input)
		}
	})
}

func TestPermissionSeesTheCall(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		o := w.options(bash())
		o.CanUseTool = func(_ context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			assert.Equal(w, "Bash", r.ToolName)
			assert.JSONEq(w, `{"command":"rm -rf ."}`, string(r.Input))
			assert.Len(w, r.Suggestions(), 1)
			return sdk.Allow(), nil
		}
		_, err := sdk.Run(w.Context(), "hi", o)
		require.NoError(w, err)
	})
}

func TestPermissionThatNobodyDecides(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		ended := make(chan struct{})
		var called atomic.Bool // a very busy machine does not come to it in time
		o := w.options(bash())
		o.PermissionTimeout = 2 * time.Second
		o.CanUseTool = func(ctx context.Context, _ *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			called.Store(true)
			defer close(ended)
			err := w.rt.Executor().Await(ctx, nil)
			return sdk.Allow(), err
		}
		l := record(o)
		all, err := sdk.Collect(sdk.Query(w.Context(), "hi", o))
		require.NoError(w, err)
		_, failed := toolResult(w, all)
		assert.True(w, failed)
		if w.sim != nil || called.Load() {
			w.await(ended)
		}
		failures := w.failures(l)
		require.Len(w, failures, 1)
		var late *sdk.TimeoutError
		require.ErrorAs(w, failures[0].Err, &late)
		assert.Equal(w, "PermissionTimeout", late.SetBy)
	})
}

func TestPermissionWaitsForAPerson(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		if w.sim == nil {
			return // in virtual time only
		}
		o := w.options(bash())
		o.CanUseTool = func(ctx context.Context, _ *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			morning := make(chan struct{})
			w.rt.Clock().AfterFunc(9*time.Hour, func() { close(morning) })
			return sdk.Allow(), w.rt.Executor().Await(ctx, morning)
		}
		all, err := sdk.Collect(sdk.Query(w.Context(), "hi", o))
		require.NoError(w, err)
		_, failed := toolResult(w, all)
		assert.False(w, failed)
	})
}

func TestPreToolUse(t *testing.T) {
	t.Parallel()
	broken := errors.New("the secret of the house")
	type handler = func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error)
	for name, tc := range map[string]struct {
		hook  handler
		told  string
		runs  bool
		asked bool // CanUseTool
	}{
		"nothing": {func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
			return sdk.PreToolUseOutput{}, nil
		}, `ran {"command":"rm -rf ."}`, true, true},
		"allow": {func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
			return sdk.PreToolUseOutput{PermissionDecision: protocol.HookAllow}, nil
		}, `ran {"command":"rm -rf ."}`, true, false},
		"modify": {func(_ context.Context, in *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
			if in.ToolName != "Bash" || string(in.ToolInput) != `{"command":"rm -rf ."}` {
				return sdk.DenyPreToolUse("the input is wrong"), nil
			}
			return sdk.PreToolUseOutput{UpdatedInput: json.RawMessage(`{"command":"make"}`)}, nil
		}, `ran {"command":"make"}`, true, true},
		"deny": {func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
			return sdk.DenyPreToolUse("not today"), nil
		}, "not today", false, false},
		"error": {func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
			return sdk.PreToolUseOutput{PermissionDecision: protocol.HookAllow}, broken
		}, "", false, false},
		"panic": {func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
			panic(broken)
		}, "", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(w *world) {
				asked := false
				o := w.options(bash())
				o.Hooks = []sdk.Hook{
					sdk.OnPreToolUse(tc.hook, sdk.Match("Bash|Write")),
					sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
						w.Error("a hook for other tools was called")
						return sdk.PreToolUseOutput{}, nil
					}, sdk.Match("Read")),
				}
				o.CanUseTool = func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
					asked = true
					return sdk.Allow(), nil
				}
				all, err := sdk.Collect(sdk.Query(w.Context(), "hi", o))
				require.NoError(w, err)
				told, failed := toolResult(w, all)
				assert.Equal(w, tc.runs, !failed)
				assert.Equal(w, tc.asked, asked)
				assert.Contains(w, told, tc.told)
				assert.NotContains(w, told, broken.Error(), "the error was shown to the model")
			})
		})
	}
}

func TestHookThatIsLate(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		ended := make(chan struct{})
		var called atomic.Bool
		o := w.options(bash())
		o.Hooks = []sdk.Hook{sdk.OnPreToolUse(func(ctx context.Context, _ *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
			called.Store(true)
			defer close(ended)
			return sdk.PreToolUseOutput{PermissionDecision: protocol.HookAllow}, w.rt.Executor().Await(ctx, nil)
		}, sdk.Timeout(2*time.Second))}
		all, err := sdk.Collect(sdk.Query(w.Context(), "hi", o))
		require.NoError(w, err)
		_, failed := toolResult(w, all)
		assert.True(w, failed)
		if w.sim != nil || called.Load() {
			w.await(ended)
		}
	})
}

func TestStopHookSendsTheAgentBack(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		o := w.script(scripted.Script{
			Turns:       []scripted.Turn{turn(scripted.Text("half"))},
			OnStopBlock: scripted.Steps{scripted.Text("whole")},
		})
		o.Hooks = []sdk.Hook{sdk.OnStop(func(_ context.Context, in *protocol.StopInput) (sdk.FeedbackOutput, error) {
			if in.StopHookActive {
				return sdk.FeedbackOutput{}, nil
			}
			return sdk.FeedbackOutput{Decision: protocol.DecisionBlock, Reason: "go on"}, nil
		})}
		r, err := sdk.Run(w.Context(), "hi", o)
		require.NoError(w, err)
		assert.Equal(w, "whole", r.Result)
	})
}

func TestHookOfAnyEvent(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		var got *session.HookCall
		o := w.options(turn(&scripted.Hook{Event: "FullMoon", Input: map[string]any{"phase": 1}}, scripted.Text("${answer}")))
		o.Hooks = []sdk.Hook{sdk.OnHookEvent("FullMoon", func(_ context.Context, c *session.HookCall) (json.RawMessage, error) {
			got = c
			return json.RawMessage(`{"systemMessage":"howl"}`), nil
		})}
		r, err := sdk.Run(w.Context(), "hi", o)
		require.NoError(w, err)
		assert.JSONEq(w, `{"systemMessage":"howl"}`, r.Result)
		assert.Equal(w, protocol.HookEvent("FullMoon"), got.Event)
		assert.Contains(w, string(got.Input), `"phase":1`)
	})
}

func TestResolveModel(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "qoder/ask/get_model_policy", "qoder/option/resolveModelTimeoutMs", "qoder/error/ModelPolicyTimeoutError")
	for name, late := range map[string]bool{"in time": false, "late": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(w *world) {
				script := scripted.Script{Dialect: agent.Qoder, Turns: []scripted.Turn{turn(&scripted.ModelPolicy{}, scripted.Text("${answer}"))}}
				o := &sdk.Options{Runtime: w.rt, Backend: sdk.InMemory(scripted.New(scripted.WithScript(&script)), agent.Qoder), Auth: sdk.QoderCLIAuth()}
				o.ResolveModel = func(ctx context.Context, r *protocol.ModelPolicyRequest) (protocol.ModelPolicyReply, error) {
					assert.Equal(w, "main", r.Purpose)
					if late {
						return protocol.ModelPolicyReply{}, w.rt.Executor().Await(ctx, nil)
					}
					model := "big"
					return protocol.ModelPolicyReply{Model: &model}, nil
				}
				if !late {
					o.ResolveModelTimeout = time.Minute
				}
				l := record(o)
				r, err := sdk.Run(w.Context(), "hi", o)
				require.NoError(w, err)
				if !late {
					assert.Contains(w, r.Result, `"model":"big"`)
					return
				}
				failures := w.failures(l)
				require.Len(w, failures, 1)
				var timeout *session.ModelPolicyTimeoutError
				require.ErrorAs(w, failures[0].Err, &timeout)
			})
		})
	}
}
