//go:build conformance

package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

type preToolUse = func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error)

// guarded are options by which every shell command would run, were it not for
// the hook.
func (r *rig) guarded(hook preToolUse, o ...sdk.HookOption) *sdk.Options {
	opts := r.options()
	opts.AllowedTools = []string{"Bash"}
	opts.Hooks = []sdk.Hook{sdk.OnPreToolUse(hook, o...)}
	return opts
}

func checkPreToolUseHookDenies(t *testing.T, rel release) {
	r := rel.rig(t)
	o := r.guarded(func(_ context.Context, in *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		assert.Equal(t, "Bash", in.ToolName)
		assert.Equal(t, "touch denied", command(t, in.ToolInput))
		assert.Equal(t, r.dir, in.Cwd)
		assert.NotEmpty(t, in.SessionID)
		assert.NotEmpty(t, in.ToolUseID)
		return sdk.DenyPreToolUse("the hook says no"), nil
	}, sdk.Match("Bash"))
	o.CanUseTool = r.noAsk()
	all, result := r.once(o, r.touch("denied"))
	assert.NoFileExists(t, r.at("denied"))
	told := r.toolResult(all)
	assert.True(t, told.IsError)
	assert.Contains(t, told.Content.Text(), "the hook says no")
	assert.Len(t, result.PermissionDenials, 1)
	assert.False(t, result.Failed())
}

func checkPreToolUseHookModifiesTheInput(t *testing.T, rel release) {
	r := rel.rig(t)
	o := r.guarded(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		return sdk.PreToolUseOutput{UpdatedInput: input(t, "touch instead")}, nil
	})
	all, _ := r.once(o, r.touch("original"))
	assert.FileExists(t, r.at("instead"))
	assert.NoFileExists(t, r.at("original"))
	assert.False(t, r.toolResult(all).IsError)
}

func TestPreToolUseHookAsks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var asked atomic.Int32
	o := r.guarded(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		return sdk.PreToolUseOutput{PermissionDecision: protocol.HookAsk, PermissionDecisionReason: "better ask"}, nil
	})
	o.CanUseTool = func(_ context.Context, ask *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		asked.Add(1)
		assert.Contains(t, ask.DecisionReason, "better ask")
		assert.Equal(t, "hook", ask.DecisionReasonType)
		return sdk.Deny("asked and denied"), nil
	}
	all, _ := r.once(o, r.touch("denied"))
	assert.EqualValues(t, 1, asked.Load(), "the hook wins over the rule")
	assert.Equal(t, "asked and denied", r.toolResult(all).Content.Text())
	assert.NoFileExists(t, r.at("denied"))
}

func TestPreToolUseHookAllowsInPlaceOfCanUseTool(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.guarded(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		return sdk.PreToolUseOutput{PermissionDecision: protocol.HookAllow}, nil
	})
	o.AllowedTools, o.CanUseTool = nil, r.noAsk()
	_, result := r.once(o, r.touch("allowed"))
	assert.FileExists(t, r.at("allowed"))
	assert.Empty(t, result.PermissionDenials)
}

// The host answers with a deny of its own. An error answer would do only where
// the agent knows the onFailure of a hook.
func checkPreToolUseHookThatDoesNotDecide(t *testing.T, rel release) {
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	for name, hook := range map[string]preToolUse{
		"error": func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
			return sdk.PreToolUseOutput{PermissionDecision: protocol.HookAllow}, errors.New("secret trouble")
		},
		"panic": func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
			panic("secret trouble")
		},
		"never": func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
			<-never
			return sdk.PreToolUseOutput{PermissionDecision: protocol.HookAllow}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rel.rig(t)
			all, result := r.once(r.guarded(hook, sdk.Timeout(10*time.Second)), r.touch("denied"))
			assert.NoFileExists(t, r.at("denied"))
			told := r.toolResult(all)
			assert.True(t, told.IsError)
			assert.NotContains(t, told.Content.Text(), "secret")
			assert.Len(t, result.PermissionDenials, 1)
			assert.Len(t, r.failed(), 1)
			for _, line := range r.wire.said() {
				if c, ok := line.control(); ok {
					assert.NotEqual(t, "control_cancel_request", c.Type, "the host denies before the agent gives up")
					assert.NotEqual(t, "error", c.Response.Subtype, "older agents take an error for a yes")
				}
			}
		})
	}
}

func TestPostToolUseHookAddsContext(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.AllowedTools = []string{"Bash"}
	o.Hooks = []sdk.Hook{sdk.OnPostToolUse(func(_ context.Context, in *sdk.PostToolUseInput) (sdk.PostToolUseOutput, error) {
		assert.Equal(t, "Bash", in.ToolName)
		assert.NotEmpty(t, in.ToolResponse)
		assert.FileExists(t, r.at("made"))
		return sdk.PostToolUseOutput{AdditionalContext: "the hook adds its mustard"}, nil
	})}
	all, _ := r.once(o, r.touch("made"))
	assert.False(t, r.toolResult(all).IsError)
	assert.Contains(t, texts(r.modelSaw("touch")), "the hook adds its mustard")
}

func TestUserPromptSubmitHookBlocks(t *testing.T) {
	t.Parallel()
	for name, hook := range map[string]func() (sdk.UserPromptSubmitOutput, error){
		"block": func() (sdk.UserPromptSubmitOutput, error) {
			return sdk.UserPromptSubmitOutput{Decision: protocol.DecisionBlock, Reason: "not this prompt"}, nil
		},
		"error": func() (sdk.UserPromptSubmitOutput, error) {
			return sdk.UserPromptSubmitOutput{}, errors.New("trouble")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			o := r.options()
			o.Hooks = []sdk.Hook{sdk.OnUserPromptSubmit(func(_ context.Context, in *protocol.UserPromptSubmitInput) (sdk.UserPromptSubmitOutput, error) {
				assert.Equal(t, "say something [[scn:text]]", in.Prompt)
				return hook()
			})}
			_, result := r.once(o, "say something [[scn:text]]")
			assert.Zero(t, result.NumTurns)
			assert.Empty(t, r.model.Requests(), "the model was not asked")
		})
	}
}

// Every hook that the agent fires has an input that its type decodes.
func TestEveryHook(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var mu sync.Mutex
	fired := map[protocol.HookEvent]bool{}
	o := r.options()
	o.AllowedTools = []string{"Bash"}
	o.CanUseTool = r.denyAll("no")
	for _, event := range protocol.HookEvents() {
		o.Hooks = append(o.Hooks, sdk.OnHookEvent(string(event), func(_ context.Context, c *session.HookCall) (json.RawMessage, error) {
			in, err := protocol.DecodeHookInput(c.Input)
			assert.NoError(t, err, "%s", c.Input)
			assert.Equal(t, event, c.Event)
			if assert.NotNil(t, in) {
				assert.Equal(t, event, in.Event())
			}
			assert.NotEmpty(t, c.ToolUseID)
			mu.Lock()
			defer mu.Unlock()
			fired[event] = true
			return nil, nil
		}))
	}
	c := r.connect(o)
	for _, prompt := range []string{
		r.touch("made"), "fail [[scn:bashfail]]", "write [[scn:write]]", "delegate [[scn:agentfg]]", "/compact", "no [[scn:err400]]",
	} {
		r.ask(c, prompt)
	}
	require.NoError(t, c.SetModel(r.ctx, "another"))
	r.ask(c, "go on [[scn:text]]")
	r.close(c)
	assert.Empty(t, r.failed())
	assert.Equal(t, []protocol.HookEvent{
		protocol.HookMessageDisplay, protocol.HookPermissionRequest, protocol.HookPostCompact, protocol.HookPostModelSwitch,
		protocol.HookPostToolBatch, protocol.HookPostToolUse, protocol.HookPostToolUseFailure, protocol.HookPreCompact,
		protocol.HookPreModelSwitch, protocol.HookPreToolUse, protocol.HookSessionStart, protocol.HookStop, protocol.HookStopFailure,
		protocol.HookSubagentStart, protocol.HookSubagentStop, protocol.HookUserPromptSubmit,
	}, slices.Sorted(maps.Keys(fired)))
}
