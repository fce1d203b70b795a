//go:build conformance

package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

func pre(out sdk.PreToolUseOutput, o ...sdk.HookOption) sdk.Hook {
	return sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) { return out, nil }, o...)
}

func post(out sdk.PostToolUseOutput) sdk.Hook {
	return sdk.OnPostToolUse(func(context.Context, *sdk.PostToolUseInput) (sdk.PostToolUseOutput, error) { return out, nil })
}

// hooked are options with hooks, by which every shell command may run.
func (r *rig) hooked(hooks ...sdk.Hook) *sdk.Options {
	o := r.options()
	o.AllowedTools, o.Hooks = []string{"Bash"}, hooks
	return o
}

// It is the agent that puts the outputs of several hooks together.
func TestSeveralHooksOfOneEvent(t *testing.T) {
	t.Parallel()
	allow := sdk.PreToolUseOutput{PermissionDecision: protocol.HookAllow}
	t.Run("a deny wins", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		all, _ := r.once(r.hooked(pre(allow), pre(sdk.DenyPreToolUse("one of us says no")), pre(allow)), r.touch("denied"))
		assert.NoFileExists(t, r.at("denied"))
		assert.Contains(t, r.toolResult(all).Content.Text(), "one of us says no")
	})
	t.Run("an ask wins over an allow", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		o := r.hooked(pre(allow), pre(sdk.PreToolUseOutput{PermissionDecision: protocol.HookAsk}), pre(allow))
		o.CanUseTool = r.denyAll("asked and denied")
		all, _ := r.once(o, r.touch("denied"))
		assert.NoFileExists(t, r.at("denied"))
		assert.Equal(t, "asked and denied", r.toolResult(all).Content.Text())
	})
	t.Run("contexts are all told", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.once(r.hooked(post(sdk.PostToolUseOutput{AdditionalContext: "mustard"}), post(sdk.PostToolUseOutput{AdditionalContext: "ketchup"})), r.touch("made"))
		seen := texts(r.modelSaw("touch"))
		assert.Contains(t, seen, "mustard")
		assert.Contains(t, seen, "ketchup")
	})
	t.Run("one updated input wins", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		// Which of them is not to be relied on: of answers that come apart it is the last,
		// of answers that come together not always (observed on 2.1.329).
		r.once(r.hooked(
			pre(sdk.PreToolUseOutput{UpdatedInput: input(t, "touch one")}),
			pre(sdk.PreToolUseOutput{UpdatedInput: input(t, "touch other")}),
			pre(sdk.PreToolUseOutput{}),
		), r.touch("original"))
		assert.NoFileExists(t, r.at("original"))
		_, one := os.Stat(r.at("one"))
		_, other := os.Stat(r.at("other"))
		assert.NotEqual(t, one == nil, other == nil, "one of them, whole")
	})
	t.Run("one updated output wins", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		output := func(text string) json.RawMessage {
			b, err := json.Marshal(map[string]any{"stdout": text, "stderr": "", "interrupted": false})
			require.NoError(t, err)
			return b
		}
		r.once(r.hooked(post(sdk.PostToolUseOutput{UpdatedToolOutput: output("first")}), post(sdk.PostToolUseOutput{UpdatedToolOutput: output("second")}),
			post(sdk.PostToolUseOutput{})), r.touch("made"))
		seen := r.modelSaw("touch").ToolResults()
		require.Len(t, seen, 1)
		assert.Contains(t, []string{"first", "second"}, seen[0].Text, "whichever came last")
	})
	t.Run("only those that match", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.once(r.hooked(pre(sdk.DenyPreToolUse("not for you"), sdk.Match("Read|Write")), pre(sdk.DenyPreToolUse("nor this"), sdk.Match("mcp__.*")),
			pre(sdk.PreToolUseOutput{UpdatedInput: input(t, "touch matched")}, sdk.Match("B.sh"))), r.touch("original"))
		assert.FileExists(t, r.at("matched"))
	})
}

func TestPreToolUseHookDefers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, result := r.once(r.hooked(pre(sdk.PreToolUseOutput{PermissionDecision: protocol.HookDefer})), r.touch("deferred"))
	assert.NoFileExists(t, r.at("deferred"))
	assert.Equal(t, "tool_deferred", result.TerminalReason)
	require.NotNil(t, result.DeferredToolUse)
	assert.Equal(t, "Bash", result.DeferredToolUse.Name)
}

// A PreToolUse hook that only watches does not stop the tool by failing, and
// is not waited for when it says so.
func TestHooksThatAreNoGates(t *testing.T) {
	t.Parallel()
	t.Run("continue on failure", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.once(r.guarded(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
			return sdk.PreToolUseOutput{}, errors.New("the metrics are down")
		}, sdk.OnFailure(session.ContinueOnFailure)), r.touch("made"))
		assert.FileExists(t, r.at("made"))
		assert.Len(t, r.failed(), 1, "the operator is told")
	})
	t.Run("async", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.once(r.hooked(pre(sdk.PreToolUseOutput{HookCommon: sdk.HookCommon{Async: true, AsyncTimeout: time.Minute}})), r.touch("made"))
		assert.FileExists(t, r.at("made"))
	})
}

func TestHookThatBlocksOnFailure(t *testing.T) {
	t.Parallel()
	broken := errors.New("secret trouble")
	r := newRig(t)
	o := r.hooked(sdk.OnPostToolUse(func(context.Context, *sdk.PostToolUseInput) (sdk.PostToolUseOutput, error) {
		return sdk.PostToolUseOutput{}, broken
	}, sdk.OnFailure(session.BlockOnFailure)))
	r.once(o, r.touch("made"))
	assert.FileExists(t, r.at("made"), "it comes after the tool")
	seen := texts(r.modelSaw("touch"))
	assert.Contains(t, seen, `blocking because onFailure is "block"`)
	assert.NotContains(t, seen, "secret")
}

func TestPermissionRequestHookDecides(t *testing.T) {
	t.Parallel()
	for name, allowed := range map[string]bool{"allow": true, "deny": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			verdict := sdk.Deny("the hook denies")
			if allowed {
				verdict = sdk.Allow()
			}
			o := r.options()
			asked := make(chan struct{}, 8)
			o.CanUseTool = func(ctx context.Context, _ *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
				asked <- struct{}{}
				<-ctx.Done() // the agent takes its question back
				return sdk.PermissionResult{}, ctx.Err()
			}
			o.Hooks = []sdk.Hook{sdk.OnPermissionRequest(func(_ context.Context, in *protocol.PermissionRequestInput) (sdk.PermissionRequestOutput, error) {
				assert.Equal(t, "Bash", in.ToolName)
				return sdk.PermissionRequestOutput{Decision: &verdict}, nil
			})}
			all, _ := r.once(o, r.touch("made"))
			if allowed {
				assert.FileExists(t, r.at("made"))
			} else {
				assert.NoFileExists(t, r.at("made"))
				assert.Contains(t, r.toolResult(all).Content.Text(), "the hook denies")
			}
		})
	}
}

func TestStopHookSendsTheAgentBackToWork(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var active []bool
	o := r.hooked(sdk.OnStop(func(_ context.Context, in *protocol.StopInput) (sdk.FeedbackOutput, error) {
		active = append(active, in.StopHookActive)
		if in.StopHookActive {
			return sdk.FeedbackOutput{}, nil
		}
		return sdk.FeedbackOutput{Decision: protocol.DecisionBlock, Reason: "check it once more"}, nil
	}))
	r.once(o, "hello [[scn:text]]")
	assert.Equal(t, []bool{false, true}, active)
	assert.Contains(t, texts(r.modelSaw("text")), "check it once more")
}

func TestPromptHooksAddContext(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.hooked(sdk.OnUserPromptSubmit(func(context.Context, *protocol.UserPromptSubmitInput) (sdk.UserPromptSubmitOutput, error) {
		return sdk.UserPromptSubmitOutput{AdditionalContext: "today is a holiday"}, nil
	}))
	r.once(o, "hello [[scn:text]]")
	assert.Contains(t, texts(r.modelSaw("text")), "today is a holiday")
}

func TestFailureAndBatchHooksTellTheModel(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.hooked(
		sdk.OnPostToolUseFailure(func(_ context.Context, in *protocol.PostToolUseFailureInput) (sdk.FeedbackOutput, error) {
			assert.Contains(t, in.Error, "oops")
			return sdk.FeedbackOutput{AdditionalContext: "context of the failure"}, nil
		}),
		sdk.OnPostToolBatch(func(_ context.Context, in *protocol.PostToolBatchInput) (sdk.FeedbackOutput, error) {
			assert.Len(t, in.ToolCalls, 1)
			return sdk.FeedbackOutput{AdditionalContext: "context of the batch"}, nil
		}))
	r.once(o, "fail [[scn:bashfail]]")
	seen := texts(r.modelSaw("bashfail"))
	assert.Contains(t, seen, "context of the failure")
	assert.Contains(t, seen, "context of the batch")
}

func TestSubagentHooks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	blocked := false
	o := r.hooked(
		sdk.OnSubagentStart(func(_ context.Context, in *protocol.SubagentStartInput) (sdk.ContextOutput, error) {
			assert.NotEmpty(t, in.AgentID)
			return sdk.ContextOutput{AdditionalContext: "context of the subagent"}, nil
		}),
		sdk.OnSubagentStop(func(_ context.Context, in *protocol.SubagentStopInput) (sdk.FeedbackOutput, error) {
			if blocked {
				return sdk.FeedbackOutput{}, nil
			}
			blocked = true
			return sdk.FeedbackOutput{Decision: protocol.DecisionBlock, Reason: "the subagent goes on"}, nil
		}))
	r.once(o, "delegate [[scn:agentfg]]")
	all := ""
	for _, q := range r.model.Requests() {
		all += texts(q)
	}
	assert.Contains(t, all, "context of the subagent")
	assert.Contains(t, all, "the subagent goes on")
}

func TestCompactionHooks(t *testing.T) {
	t.Parallel()
	t.Run("blocked", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		o := r.hooked(sdk.OnPreCompact(func(_ context.Context, in *protocol.PreCompactInput) (sdk.BlockOutput, error) {
			assert.Equal(t, "manual", in.Trigger)
			return sdk.BlockOutput{Decision: protocol.DecisionBlock, Reason: "keep it all"}, nil
		}))
		c := r.connect(o)
		r.ask(c, "hello [[scn:text]]")
		before := len(r.model.Requests())
		all, _ := r.ask(c, "/compact")
		r.close(c)
		assert.Empty(t, only[*protocol.CompactBoundaryMessage](all))
		assert.Len(t, r.model.Requests(), before, "nothing was summed up")
	})
	t.Run("context after it", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		o := r.hooked(sdk.OnSessionStart(func(_ context.Context, in *protocol.SessionStartInput) (sdk.SessionStartOutput, error) {
			assert.Equal(t, "compact", in.Source)
			return sdk.SessionStartOutput{AdditionalContext: "context of the new start"}, nil
		}, sdk.Match("compact")))
		c := r.connect(o)
		assert.Empty(t, c.Warnings())
		r.ask(c, "hello [[scn:text]]")
		r.ask(c, "/compact")
		r.ask(c, "go on [[scn:text]]")
		r.close(c)
		assert.Contains(t, texts(r.modelSaw("text")), "context of the new start")
	})
}

// Nobody can be asked here, so an ask is a deny.
func TestPreModelSwitchHookDenies(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var verdict protocol.HookPermission // changes between calls alone
	c := r.connect(r.hooked(sdk.OnPreModelSwitch(func(_ context.Context, in *protocol.PreModelSwitchInput) (sdk.PreModelSwitchOutput, error) {
		assert.Equal(t, "another", in.ToModel)
		return sdk.PreModelSwitchOutput{PermissionDecision: verdict, PermissionDecisionReason: "not that one"}, nil
	})))
	r.ask(c, "hello [[scn:text]]")
	for _, verdict = range []protocol.HookPermission{protocol.HookDeny, protocol.HookAsk} {
		var refused *sdk.ControlError
		require.ErrorAs(t, c.SetModel(r.ctx, "another"), &refused, verdict)
		assert.Contains(t, refused.Error(), "not that one")
		r.ask(c, "go on [[scn:text]]")
		assert.NotEqual(t, "another", r.modelSaw("text").Model)
	}
	verdict = protocol.HookAllow
	require.NoError(t, c.SetModel(r.ctx, "another"))
	r.ask(c, "go on [[scn:text]]")
	assert.Equal(t, "another", r.modelSaw("text").Model)
	r.close(c)
}

func TestMessageDisplayHook(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var mu sync.Mutex
	var shown string
	o := r.hooked(sdk.OnMessageDisplay(func(_ context.Context, in *protocol.MessageDisplayInput) (sdk.MessageDisplayOutput, error) {
		mu.Lock()
		defer mu.Unlock()
		shown += in.Delta
		return sdk.MessageDisplayOutput{DisplayContent: "***"}, nil
	}))
	c := r.connect(o)
	_, result := r.ask(c, "hello [[scn:text]]")
	r.ask(c, "go on [[scn:text]]")
	r.close(c)
	mu.Lock()
	defer mu.Unlock()
	assert.Contains(t, shown, "Hello from the scripted model.")
	assert.Equal(t, "***", result.Result)
	assert.Contains(t, texts(r.modelSaw("text")), "Hello from the scripted model.", "the model remembers what it said")
}

func TestInterruptEndsTheHooksContext(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	called, ended := make(chan struct{}, 1), make(chan error, 1)
	c := r.connect(r.guarded(func(ctx context.Context, _ *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		called <- struct{}{}
		<-ctx.Done()
		ended <- ctx.Err()
		return sdk.PreToolUseOutput{PermissionDecision: protocol.HookAllow}, nil // too late
	}))
	turn := r.send(c, r.touch("denied"))
	await(r, "the hook", called)
	_, err := c.Interrupt(r.ctx)
	require.NoError(t, err)
	require.ErrorIs(t, await(r, "the end of the hook's context", ended), context.Canceled)
	_, err = turn.Result(r.ctx)
	require.NoError(t, err)
	assert.NoFileExists(t, r.at("denied"))
	r.close(c)
}

// The wire has what the user said; the handler has a tenth less.
func TestHookTimeoutOnTheWire(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.guarded(func(ctx context.Context, _ *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		<-ctx.Done()
		return sdk.PreToolUseOutput{}, ctx.Err()
	}, sdk.Timeout(10*time.Second))
	all, _ := r.once(o, r.touch("denied"))
	assert.Contains(t, r.toolResult(all).Content.Text(), "no decision was made in time", "the host was there first")
	said := false
	for _, line := range r.wire.said() {
		if c, ok := line.control(); ok && line.who == "host" && c.Request.Subtype == "initialize" {
			assert.Contains(t, line.text, `"timeout":10`)
			said = true
		}
	}
	assert.True(t, said)
	assert.NoFileExists(t, r.at("denied"))
}

func TestHooksThatNobodyCalls(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	never := func(_ context.Context, c *session.HookCall) (json.RawMessage, error) {
		t.Errorf("%s was called", c.Event)
		return nil, nil
	}
	o := r.hooked(sdk.OnHookEvent("Setup", never), sdk.OnHookEvent("SessionEnd", never), sdk.OnHookEvent("SessionStart", never),
		sdk.OnHookEvent("CwdChanged", never), sdk.OnHookEvent("FileChanged", never, sdk.Match("made")))
	c := r.connect(o)
	assert.Len(t, c.Warnings(), 4, "before anything happens; a hook for SessionStart may name files")
	r.ask(c, r.run("touch made; mkdir below; cd below"))
	all, _ := r.ask(c, r.run("pwd"))
	assert.Equal(t, r.at("below"), r.toolResult(all).Content.Text())
	r.close(c)
}

func TestHookOfAnEventOfNextWeek(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.hooked(sdk.OnHookEvent("NextWeek", func(context.Context, *session.HookCall) (json.RawMessage, error) { return nil, nil }))
	c := r.connect(o)
	assert.Len(t, c.Warnings(), 1)
	r.ask(c, "hello [[scn:text]]")
	r.close(c)
}

func TestHookChangesWhatAnMCPToolSaid(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.served(echo)
	o.Hooks = []sdk.Hook{sdk.OnPostToolUse(func(_ context.Context, in *sdk.PostToolUseInput) (sdk.PostToolUseOutput, error) {
		return sdk.PostToolUseOutput{UpdatedMCPToolOutput: json.RawMessage(`[{"type":"text","text":"changed by the hook"}]`)}, nil
	}, sdk.Match("mcp__srv__.*"))}
	r.once(o, "use the tool [[scn:mcp]]")
	seen := r.modelSaw("mcp").ToolResults()
	require.Len(t, seen, 1)
	assert.Equal(t, "changed by the hook", seen[0].Text)
}
