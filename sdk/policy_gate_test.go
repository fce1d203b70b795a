package sdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// callback is a CanUseTool that keeps what it was asked.
type callback struct {
	answer sdk.PermissionResult
	asked  []*sdk.ToolPermissionRequest
}

func (c *callback) decide(_ context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
	c.asked = append(c.asked, r)
	return c.answer, nil
}

// A policy that allows one command allows nothing else, whatever the agent would
// run by itself in its mode.
func TestPolicyIsAnAllowlist(t *testing.T) {
	t.Parallel()
	use := func(name string, input map[string]any) *scripted.ToolUse {
		return &scripted.ToolUse{Name: name, Input: input, Result: "ran"}
	}
	command := func(c string) *scripted.ToolUse { return use("Bash", map[string]any{"command": c}) }
	file := func(name, p string) *scripted.ToolUse { return use(name, map[string]any{"file_path": p}) }
	free := []*scripted.ToolUse{command("git status"), use("TodoWrite", nil), use("StructuredOutput", nil)}
	calls := []*scripted.ToolUse{
		command("echo hi"), command("cat go.mod"), command("git log"), command("make"), file("Read", "/repo/go.mod"),
		file("Write", "/repo/x"), file("Write", "/repo/.git/hooks/pre-commit"), use("Grep", map[string]any{"pattern": "x"}),
		use("Skill", map[string]any{"skill": "init"}), use("Agent", map[string]any{"subagent_type": "Explore", "prompt": "x"}),
		{Name: "WebFetch", Gate: agent.GateAllow, Input: map[string]any{"url": "https://go.dev"}, Result: "ran"},
		use("WebSearch", map[string]any{"query": "x"}), // in AllowedTools
	}
	modes := []sdk.PermissionMode{"", sdk.ModeAcceptEdits, sdk.ModeDontAsk, sdk.ModeBypassPermissions, sdk.ModePlan, sdk.ModeAuto}
	type agentMode struct {
		agent agent.Dialect
		mode  sdk.PermissionMode
	}
	cases := []agentMode{{agent.Qoder, sdk.ModeYolo}}
	for _, mode := range modes {
		cases = append(cases, agentMode{agent.Claude, mode}, agentMode{agent.Qoder, mode})
	}
	for _, tc := range cases {
		mode := tc.mode
		for _, byDefault := range []policy.Default{policy.Ask, policy.Deny} {
			t.Run(fmt.Sprintf("%s/%s/%s", tc.agent, mode, byDefault), func(t *testing.T) {
				t.Parallel()
				in(t, func(w *world) {
					for _, c := range []*callback{nil, {answer: sdk.Deny("a person says no")}, {answer: sdk.Allow()}} {
						var steps []scripted.Step
						for _, use := range slices.Concat(free, calls) {
							steps = append(steps, use)
						}
						o := w.like(tc.agent, script(turn(steps...)))
						o.Cwd = "/repo"
						// Qoder's flag for it is the mode bypassPermissions, whatever else is set.
						o.PermissionMode, o.AllowDangerouslySkipPermissions = mode, mode == sdk.ModeBypassPermissions || mode == sdk.ModeYolo
						o.AllowedTools = []string{"WebSearch"}
						o.Policy = &sdk.Policy{Allow: []string{"Bash(git status)"}, Cwd: "/repo", Default: byDefault}
						if c != nil {
							o.CanUseTool = c.decide
						}
						all, err := sdk.Collect(sdk.Query(w.Context(), "hi", o))
						require.NoError(w, err)
						var results []*protocol.ToolResultBlock
						for _, m := range all {
							results = append(results, sdk.ToolResults(m)...)
						}
						require.Len(w, results, len(free)+len(calls))
						asks := c != nil && mode != sdk.ModeDontAsk && byDefault == policy.Ask
						for i, use := range slices.Concat(free, calls) {
							runs := i < len(free) || asks && c.answer.Allowed()
							assert.Equal(w, runs, !results[i].IsError, "%s %v: %s", use.Name, use.Input, results[i].Content.Text())
						}
						if asks {
							assert.GreaterOrEqual(w, len(c.asked), len(calls))
							assert.Equal(w, "hook", c.asked[0].DecisionReasonType)
						} else if c != nil {
							assert.Empty(w, c.asked)
						}
					}
				})
			})
		}
	}
}

// In a mode in which the agent may decide in spite of a hook, the hook itself asks.
func TestPolicyAsksInEveryMode(t *testing.T) {
	t.Parallel()
	write := tool("Write", "", map[string]any{"file_path": "/repo/.git/config"})
	for name, tc := range map[string]struct {
		answer sdk.PermissionResult
		told   string
		runs   bool
		stops  bool
	}{
		"allow":                   {sdk.Allow(), `ran {"file_path":"/repo/.git/config"}`, true, false},
		"allow another input":     {sdk.AllowInput(json.RawMessage(`{"file_path":"/repo/x"}`)), `ran {"file_path":"/repo/x"}`, true, false},
		"allow what is denied":    {sdk.AllowInput(json.RawMessage(`{"file_path":"/repo/secret"}`)), "by the rule Edit(secret)", false, false},
		"allow what is no object": {sdk.AllowInput(json.RawMessage(`7`)), "", false, false},
		"deny":                    {sdk.Deny("not that file"), "not that file", false, false},
		"deny and stop":           {sdk.DenyAndStop("stop here"), "stop here", false, true},
		"nothing":                 {sdk.PermissionResult{}, "", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(w *world) {
				c := &callback{answer: tc.answer}
				o := w.options(write)
				o.Cwd = "/repo"
				o.PermissionMode, o.AllowDangerouslySkipPermissions = sdk.ModeBypassPermissions, true
				o.Policy, o.CanUseTool = &sdk.Policy{Ask: []string{"Write"}, Deny: []string{"Edit(secret)"}, Cwd: "/repo"}, c.decide
				all, err := sdk.Collect(sdk.Query(w.Context(), "hi", o))
				require.NoError(w, err)
				told, failed := toolResult(w, all)
				assert.Equal(w, tc.runs, !failed, told)
				assert.Contains(w, told, tc.told)
				require.Len(w, c.asked, 1)
				assert.Equal(w, "Write", c.asked[0].ToolName)
				assert.NotEmpty(w, c.asked[0].ToolUseID)
				assert.Contains(w, c.asked[0].DecisionReason, "the ask rule Write")
				stopped := false
				for _, m := range all {
					if result, ok := m.(*sdk.ResultMessage); ok {
						stopped = result.TerminalReason == "hook_stopped"
					}
				}
				assert.Equal(w, tc.stops, stopped)
			})
		})
	}
}

// The callback has all the time that PermissionTimeout gives it, also there.
func TestPolicyAsksForAsLongAsItTakes(t *testing.T) {
	t.Parallel()
	for timeout, want := range map[time.Duration]time.Duration{0: 24*time.Hour - time.Second, time.Second: time.Second, 90 * time.Second: 90 * time.Second} {
		o := &sdk.Options{Backend: scripted.New(), Policy: &sdk.Policy{Cwd: "/repo"}, PermissionTimeout: timeout}
		o.CanUseTool = (&callback{}).decide
		plan, err := sdk.PreviewLaunch(o)
		require.NoError(t, err)
		limits := map[string]time.Duration{}
		for _, limit := range plan.Timeouts {
			limits[limit.What] = limit.Limit
		}
		assert.Contains(t, slices.Collect(maps.Values(limits)), want, "%v: %v", timeout, limits)
	}
}

// An input that a hook of the user's puts in place of the call's is held against
// the policy, whether or not the agent would ask.
func TestPolicyAndChangedInputs(t *testing.T) {
	t.Parallel()
	pre := func(out sdk.PreToolUseOutput) sdk.Hook {
		return sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) { return out, nil })
	}
	raw := func(answer string) sdk.Hook {
		return sdk.OnHookEvent("PreToolUse", func(context.Context, *session.HookCall) (json.RawMessage, error) { return json.RawMessage(answer), nil })
	}
	denied, asked, allowed := json.RawMessage(`{"command":"rm x"}`), json.RawMessage(`{"command":"git push"}`), json.RawMessage(`{"command":"git log"}`)
	unnamed := json.RawMessage(`{"command":"make"}`)
	for name, tc := range map[string]struct {
		hook  sdk.Hook
		told  string
		runs  bool
		asked bool
	}{
		"denied, no decision":   {pre(sdk.PreToolUseOutput{UpdatedInput: denied}), "by the rule Bash(rm:*)", false, false},
		"denied, and allowed":   {pre(sdk.PreToolUseOutput{PermissionDecision: protocol.HookAllow, UpdatedInput: denied}), "by the rule Bash(rm:*)", false, false},
		"denied, and asked for": {pre(sdk.PreToolUseOutput{PermissionDecision: protocol.HookAsk, UpdatedInput: denied}), "by the rule Bash(rm:*)", false, false},
		"denied, raw": {raw(`{"decision":"approve","continue":true,"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"command":"rm x"}}}`),
			"by the rule Bash(rm:*)", false, false},
		"denied, keys that differ in case": {raw(`{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"command":"rm x","Command":"git log"},"UpdatedInput":{"command":"git log"}}}`),
			"by the rule Bash(rm:*)", false, false},
		"denied, twice":            {raw(`{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"command":"git log"},"updatedInput":{"command":"rm x"}}}`), "by the rule Bash(rm:*)", false, false},
		"an ask rule":              {pre(sdk.PreToolUseOutput{UpdatedInput: asked}), `ran {"command":"git push"}`, true, true},
		"an ask rule, and allowed": {pre(sdk.PreToolUseOutput{PermissionDecision: protocol.HookAllow, UpdatedInput: asked}), `ran {"command":"git push"}`, true, true},
		"an ask rule, and denied":  {pre(sdk.PreToolUseOutput{PermissionDecision: protocol.HookDeny, PermissionDecisionReason: "not mine", UpdatedInput: asked}), "not mine", false, false},
		"an ask rule, and blocked": {raw(`{"decision":"block","reason":"not mine","hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"command":"git push"}}}`), "not mine", false, false},
		"no rule":                  {pre(sdk.PreToolUseOutput{PermissionDecision: protocol.HookAllow, UpdatedInput: unnamed}), `ran {"command":"make"}`, true, true},
		"allowed":                  {pre(sdk.PreToolUseOutput{UpdatedInput: allowed}), `ran {"command":"git log"}`, true, false},
		"not changed":              {pre(sdk.PreToolUseOutput{AdditionalContext: "x"}), `ran {"command":"git status"}`, true, false},
		"async":                    {raw(`{"async":true}`), `ran {"command":"git status"}`, true, false},
		"a decision that is none":  {raw(`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":7,"updatedInput":{"command":"rm x"}}}`), "", false, false},
	} {
		for _, mode := range []sdk.PermissionMode{"", sdk.ModeAcceptEdits, sdk.ModeBypassPermissions} {
			t.Run(name+"/"+string(mode), func(t *testing.T) {
				t.Parallel()
				in(t, func(w *world) {
					c := &callback{answer: sdk.Allow()}
					o := w.options(tool("Bash", "", map[string]any{"command": "git status"}))
					o.Cwd = "/repo"
					o.PermissionMode, o.AllowDangerouslySkipPermissions = mode, true
					o.AllowedTools = []string{"Bash"}
					o.Policy = &sdk.Policy{Allow: []string{"Bash(git:*)"}, Ask: []string{"Bash(git push:*)"}, Deny: []string{"Bash(rm:*)"}, Cwd: "/repo"}
					o.CanUseTool, o.Hooks = c.decide, []sdk.Hook{tc.hook}
					all, err := sdk.Collect(sdk.Query(w.Context(), "hi", o))
					require.NoError(w, err)
					told, failed := toolResult(w, all)
					assert.Contains(w, told, tc.told)
					assert.Equal(w, tc.runs, !failed, told)
					assert.Equal(w, tc.asked, len(c.asked) > 0)
				})
			})
		}
	}
}

// A PermissionRequest hook that allows another input cannot outrun a deny rule.
func TestPolicyAndPermissionRequestHooks(t *testing.T) {
	t.Parallel()
	for command, runs := range map[string]bool{"rm x": false, "make all": true} {
		in(t, func(w *world) {
			o := w.options(tool("Bash", "", map[string]any{"command": "make"}))
			o.Cwd = "/repo"
			o.Policy = &sdk.Policy{Deny: []string{"Bash(rm:*)"}, Cwd: "/repo"}
			o.CanUseTool = func(ctx context.Context, _ *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
				return sdk.Deny("too late"), w.rt.Executor().Await(ctx, nil)
			}
			o.Hooks = []sdk.Hook{sdk.OnPermissionRequest(func(context.Context, *protocol.PermissionRequestInput) (sdk.PermissionRequestOutput, error) {
				allow := sdk.AllowInput(json.RawMessage(`{"command":"` + command + `"}`))
				return sdk.PermissionRequestOutput{Decision: &allow}, nil
			})}
			all, err := sdk.Collect(sdk.Query(w.Context(), "hi", o))
			require.NoError(w, err)
			told, failed := toolResult(w, all)
			assert.Equal(w, runs, !failed, told)
		})
	}
}

func TestPolicyWarnings(t *testing.T) {
	t.Parallel()
	warned := func(p sdk.Policy, set func(*sdk.Options)) []string {
		o := &sdk.Options{Backend: scripted.New(), Policy: &p}
		set(o)
		plan, err := sdk.PreviewLaunch(o)
		require.NoError(t, err)
		var all []string
		for _, w := range plan.Warnings {
			all = append(all, w.Option+" "+w.Rule)
		}
		return all
	}
	bypass := func(o *sdk.Options) {
		o.PermissionMode, o.AllowDangerouslySkipPermissions = protocol.ModeBypassPermissions, true
	}
	assert.Empty(t, warned(sdk.Policy{}, func(*sdk.Options) {}))
	assert.Empty(t, warned(sdk.Policy{}, bypass), "the hook of the policy asks in spite of the mode")
	assert.Equal(t, []string{"AllowedTools Read"}, warned(sdk.Policy{}, func(o *sdk.Options) { o.AllowedTools = []string{"Read"} }))
	assert.Equal(t, []string{"Policy.Default agent", "CanUseTool bypassPermissions"}, warned(sdk.Policy{Default: policy.Agent}, bypass))
}

// With the default agent the policy is what its rules are, and no more.
func TestPolicyThatLeavesTheRestToTheAgent(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		for command, runs := range map[string]bool{"echo hi": true, "make": false, "rm x": false, "git push": false} {
			o := w.options(tool("Bash", "", map[string]any{"command": command}))
			o.Cwd = "/repo"
			o.Policy = &sdk.Policy{Ask: []string{"Bash(git push:*)"}, Deny: []string{"Bash(rm:*)"}, Cwd: "/repo", Default: policy.Agent}
			all, err := sdk.Collect(sdk.Query(w.Context(), "hi", o))
			require.NoError(w, err)
			told, failed := toolResult(w, all)
			assert.Equal(w, runs, !failed, "%s: %s", command, told)
		}
	})
}
