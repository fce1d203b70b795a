package callback_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/callback"
	"github.com/agent-troupe/troupe/actors/callback/callbacktest"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/internal/parity"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// told is the request as the callback gets it.
func told(t *testing.T, d dialect.Dialect, request string) *protocol.CanUseToolRequest {
	t.Helper()
	var got *protocol.CanUseToolRequest
	exchange(t, d, request, func(_ context.Context, r *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
		got = r
		return protocol.PermissionResult{}, nil
	})
	require.NotNil(t, got)
	return got
}

// exchange takes a request through the gate, and returns the answer.
func exchange(t *testing.T, d dialect.Dialect, request string, decide session.CanUseTool) string {
	t.Helper()
	r := callbacktest.New(t,
		func(*callbacktest.Rig) *callback.Actor {
			return &callback.Actor{Kind: session.KindPermission, Prepare: callback.PreparePermission(d, &session.Options{CanUseTool: decide})}
		},
		func(_ protocol.Frame, reason string) ([]byte, string) {
			return d.PermissionFailure(&protocol.CanUseToolRequest{ToolUseID: "toolu_1"}, reason), ""
		})
	r.Ask(`{"type":"control_request","request_id":"p","request":{"subtype":"can_use_tool",`+request+`}}`, 0)
	return r.Answer()
}

func dialects() map[string]dialect.Dialect {
	return map[string]dialect.Dialect{"claude": claude.New(), "qoder": qoder.New()}
}

func TestWhatTheCallbackIsTold(t *testing.T) {
	t.Parallel()
	t.Run("the call", func(t *testing.T) {
		t.Parallel()
		parity.Covers(t, "both/permission/toolName", "both/permission/displayName", "both/permission/input", "both/permission/toolUseID",
			"both/permission/agentID", "both/permission/title", "both/permission/description")
		for name, d := range dialects() {
			got := told(t, d, `"tool_name":"Bash","display_name":"Shell","input":{"command":"ls"},"tool_use_id":"toolu_1","agent_id":"a1","title":"Run it?","description":"lists"`)
			assert.Equal(t, &protocol.CanUseToolRequest{
				ToolName: "Bash", DisplayName: "Shell", Input: json.RawMessage(`{"command":"ls"}`), ToolUseID: "toolu_1", AgentID: "a1",
				Title: "Run it?", Description: "lists",
			}, got, name)
		}
	})
	t.Run("why", func(t *testing.T) {
		t.Parallel()
		parity.Covers(t, "both/permission/blockedPath", "both/permission/decisionReason", "both/permission/decisionReasonType",
			"both/permission/classifierApprovable", "both/permission/suggestions")
		for name, d := range dialects() {
			got := told(t, d, `"tool_name":"Bash","input":{},"blocked_path":"/x","decision_reason":"why","decision_reason_type":"rule","classifier_approvable":false,`+
				`"permission_suggestions":[{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"ls"}],"behavior":"allow","destination":"session"}]`)
			assert.Equal(t, "/x", got.BlockedPath, name)
			assert.Equal(t, "why", got.DecisionReason)
			assert.Equal(t, "rule", got.DecisionReasonType)
			if assert.NotNil(t, got.ClassifierApprovable, "false says more than nothing") {
				assert.False(t, *got.ClassifierApprovable)
			}
			assert.Equal(t, []protocol.PermissionUpdate{{
				Type: protocol.AddRules, Rules: []protocol.PermissionRule{{ToolName: "Bash", RuleContent: "ls"}},
				Behavior: protocol.BehaviorAllow, Destination: protocol.ToSession,
			}}, got.Suggestions())
			other := told(t, d, `"tool_name":"Bash","input":{},"suggestions":[{"type":"setMode","mode":"plan","destination":"session"}]`)
			assert.Equal(t, []protocol.PermissionUpdate{{Type: protocol.SetMode, Mode: protocol.ModePlan, Destination: protocol.ToSession}}, other.Suggestions())
			assert.Nil(t, other.ClassifierApprovable)
		}
	})
	t.Run("claude", func(t *testing.T) {
		t.Parallel()
		parity.Covers(t, "claude/permission/decision_reason_hook_event", "claude/permission/requires_user_interaction", "claude/permission/mcp_server",
			"claude/permission/server_policy_ask_only", "claude/permission/suppress_always_allow_rule", "claude/permission/default_to_no", "claude/permission/matched_ask_rule")
		got := told(t, claude.New(), `"tool_name":"mcp__srv__echo","input":{},"decision_reason_hook_event":"PreToolUse","decision_reason_hook_source":"settings",`+
			`"requires_user_interaction":true,"mcp_server":{"name":"srv","source":"sdk"},"server_policy_ask_only":true,"suppress_always_allow_rule":true,`+
			`"default_to_no":true,"matched_ask_rule":{"source":"session","tool_name":"Bash","rule_content":"ls"},`+
			`"decision_reason_code":"c","decision_reason_rule_source":"userSettings","server_prompt":"May I?","plugin":"pl"`)
		assert.Equal(t, &protocol.CanUseToolRequest{
			ToolName: "mcp__srv__echo", Input: json.RawMessage(`{}`),
			DecisionReasonHookEvent: protocol.HookPreToolUse, DecisionReasonHookSource: "settings",
			DecisionReasonCode: "c", DecisionReasonRuleSource: "userSettings",
			RequiresUserInteraction: true, MCPServer: &protocol.MCPServerProvenance{Name: "srv", Source: "sdk"},
			ServerPolicyAskOnly: true, SuppressAlwaysAllowRule: true, DefaultToNo: true,
			MatchedAskRule: &protocol.MatchedAskRule{Source: "session", ToolName: "Bash", RuleContent: "ls"},
			ServerPrompt:   "May I?", Plugin: "pl",
		}, got)
	})
	t.Run("qoder", func(t *testing.T) {
		t.Parallel()
		parity.Covers(t, "qoder/permission/permissionKind", "qoder/permission/permissionOptions", "qoder/permission/details", "qoder/permission/exitPlanMode")
		got := told(t, qoder.New(), `"tool_name":"Bash","input":{},"permission_kind":"repeated_tool_call","options":[{"outcome":"proceed_once","name":"Once","allowed":true}],`+
			`"details":{"type":"repeated_tool_call"},"exit_plan_mode":{"plan":"p"}`)
		assert.Equal(t, &protocol.CanUseToolRequest{
			ToolName: "Bash", Input: json.RawMessage(`{}`), PermissionKind: "repeated_tool_call",
			Options: []protocol.PermissionOption{{Outcome: "proceed_once", Name: "Once", Allowed: true}},
			Details: json.RawMessage(`{"type":"repeated_tool_call"}`), ExitPlanMode: json.RawMessage(`{"plan":"p"}`),
		}, got)
	})
}

func TestWhatTheAgentIsTold(t *testing.T) {
	t.Parallel()
	const call = `"tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"toolu_1"`
	t.Run("both", func(t *testing.T) {
		t.Parallel()
		parity.Covers(t, "both/permission/allow.updatedInput", "both/permission/allow.updatedPermissions", "both/permission/decisionClassification",
			"both/permission/deny.message", "both/permission/deny.interrupt")
		for want, result := range map[string]protocol.PermissionResult{
			`{"behavior":"allow","updatedInput":{"command":"ls"},"toolUseID":"toolu_1"}`: {Behavior: protocol.BehaviorAllow, ToolUseID: "another"},
			`{"behavior":"allow","updatedInput":{"command":"pwd"},"toolUseID":"toolu_1","decisionClassification":"user_permanent",` +
				`"updatedPermissions":[{"type":"removeRules","rules":[{"toolName":"Bash"}],"behavior":"deny","destination":"localSettings"},` +
				`{"type":"removeDirectories","directories":["/x"],"destination":"session"}]}`: {
				Behavior: protocol.BehaviorAllow, UpdatedInput: json.RawMessage(`{"command":"pwd"}`), DecisionClassification: protocol.UserPermanent,
				UpdatedPermissions: []protocol.PermissionUpdate{
					{Type: protocol.RemoveRules, Rules: []protocol.PermissionRule{{ToolName: "Bash"}}, Behavior: protocol.BehaviorDeny, Destination: protocol.ToLocalSettings},
					{Type: protocol.RemoveDirectories, Directories: []string{"/x"}, Destination: protocol.ToSession},
				},
			},
			`{"behavior":"deny","message":"no","interrupt":true,"toolUseID":"toolu_1","decisionClassification":"user_reject"}`: {
				Behavior: protocol.BehaviorDeny, Message: "no", Interrupt: true, DecisionClassification: protocol.UserReject,
			},
		} {
			for name, d := range dialects() {
				assert.JSONEq(t, want, exchange(t, d, call, func(context.Context, *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
					return result, nil
				}), name)
			}
		}
	})
	t.Run("qoder", func(t *testing.T) {
		t.Parallel()
		parity.Covers(t, "qoder/permission/allow.permissionScope")
		assert.JSONEq(t, `{"behavior":"allow","updatedInput":{"command":"ls"},"toolUseID":"toolu_1","permissionScope":"session","extra":1}`,
			exchange(t, qoder.New(), call, func(context.Context, *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
				return protocol.PermissionResult{Behavior: protocol.BehaviorAllow, PermissionScope: "session", Extra: map[string]json.RawMessage{"extra": json.RawMessage(`1`)}}, nil
			}))
	})
}

// The vendors' AbortSignal is the callback's context.
func TestTheAgentNoLongerWantsToKnow(t *testing.T) {
	t.Parallel()
	parity.Covers(t, "qoder/permission/signal")
	for name, d := range dialects() {
		var r *callbacktest.Rig
		var ended error
		r = callbacktest.New(t,
			func(r *callbacktest.Rig) *callback.Actor {
				return &callback.Actor{Kind: session.KindPermission, Prepare: callback.PreparePermission(d, &session.Options{CanUseTool: func(ctx context.Context, _ *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
					ended = r.Sched.Await(ctx, make(chan struct{}))
					return protocol.PermissionResult{Behavior: protocol.BehaviorAllow}, nil
				}})}
			},
			func(protocol.Frame, string) ([]byte, string) { return []byte(`{}`), "" })
		r.Ask(`{"type":"control_request","request_id":"p","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{}}}`, 0)
		r.Cancel("p")
		r.Pass(0)
		require.ErrorIs(t, ended, context.Canceled, name)
		assert.Empty(t, r.Lines, "what the agent took back is not answered")
	}
}
