package claude

import (
	"encoding/json"
	"fmt"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/internal/build"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// UserLine implements dialect.Dialect.
func (Dialect) UserLine(d dialect.UserDefaults, m *protocol.UserMessage) ([]byte, error) {
	line := *m
	line.ClientComposed = line.ClientComposed || d.VerbatimPrompts
	return protocol.AppendUserLine(nil, &line, protocol.SessionIDAlways)
}

// Encode implements dialect.Dialect.
func (Dialect) Encode(r protocol.HostRequest) (json.RawMessage, error) {
	if _, raw := r.(*protocol.UnknownHostRequest); !raw && foreign(r.Subtype()) {
		return nil, &session.UnsupportedCapabilityError{Backend: Name, Request: r.Subtype()}
	}
	return protocol.MarshalRequest(r, protocol.SubtypeOnly)
}

// foreign reports whether a request is Qoder's alone.
func foreign(subtype string) bool {
	switch subtype {
	case "get_models", "list_plugins", "account_info", "get_usage_info", "add_directories", "set_proxy",
		"mcp_inject_token", "set_goal", "get_goal", "clear_goal", "set_goal_max_turns", "set_plan_mode",
		"get_plan_mode", "rewind", "flush_memory", "refresh_memory", "flush_skill_evolution", "get_byok_config",
		"validate_byok_model", "list_byok_configs", "create_byok_config", "update_byok_config",
		"delete_byok_config", "check_byok_config", "enable_remote_projection", "disable_remote_projection":
		return true
	}
	return false
}

// Capability implements dialect.Dialect: Claude Code refuses what it does not know, by an error answer.
func (Dialect) Capability(protocol.HostRequest) string { return "" }

// PermissionAnswer implements dialect.Dialect. updatedInput is optional to current releases and was required by older
// ones, so the input goes back even if it is unchanged.
func (Dialect) PermissionAnswer(req *protocol.CanUseToolRequest, res protocol.PermissionResult) (json.RawMessage, error) {
	return build.PermissionAnswer(req, res)
}

// PermissionFailure implements dialect.Dialect.
func (Dialect) PermissionFailure(req *protocol.CanUseToolRequest, reason string) json.RawMessage {
	return build.PermissionFailure(req, reason)
}

// isGate reports whether the answer to a hook decides if something may happen.
func isGate(event protocol.HookEvent) bool {
	_, gate := refusal(event, "")
	return gate
}

// refusal is the answer that refuses, for the events that can be refused.
func refusal(event protocol.HookEvent, reason string) (any, bool) {
	block := map[string]any{"decision": protocol.DecisionBlock, "reason": reason}
	specific := func(v map[string]any) any {
		v["hookEventName"] = event
		return map[string]any{"hookSpecificOutput": v}
	}
	switch event {
	case protocol.HookPreToolUse, protocol.HookPreModelSwitch:
		return specific(map[string]any{"permissionDecision": "deny", "permissionDecisionReason": reason}), true
	case protocol.HookPermissionRequest:
		return specific(map[string]any{"decision": map[string]string{"behavior": "deny", "message": reason}}), true
	case protocol.HookElicitation, protocol.HookElicitationResult:
		// The agent ignores the action of a callback without a decision (observed on 2.1.329).
		block["hookSpecificOutput"] = map[string]any{"hookEventName": event, "action": protocol.ElicitDecline}
		return block, true
	case protocol.HookUserPromptSubmit, protocol.HookUserPromptExpansion, protocol.HookConfigChange:
		return block, true
	}
	return nil, false
}

// HookFailure implements dialect.Dialect.
func (Dialect) HookFailure(event protocol.HookEvent, reason string) (json.RawMessage, string) {
	if reason == "" {
		reason = fmt.Sprintf("The host's %s hook failed.", event)
	}
	answer, gate := refusal(event, reason)
	if !gate {
		return nil, reason
	}
	return build.MustJSON(answer), ""
}

// ModelPolicyAnswer implements dialect.Dialect: Claude Code has no model policies.
func (Dialect) ModelPolicyAnswer(protocol.ModelPolicyReply) (json.RawMessage, error) {
	return nil, &session.UnsupportedCapabilityError{Backend: Name, Request: "get_model_policy"}
}
