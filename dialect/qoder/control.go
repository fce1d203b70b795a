package qoder

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/internal/build"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// UserLine implements dialect.Dialect.
func (Dialect) UserLine(d dialect.UserDefaults, m *protocol.UserMessage) ([]byte, error) {
	line := *m
	if line.CustomContext == nil {
		line.CustomContext = d.CustomContext
	}
	return protocol.AppendUserLine(nil, &line, protocol.SessionIDIfSet)
}

// Encode implements dialect.Dialect.
func (Dialect) Encode(r protocol.HostRequest) (json.RawMessage, error) {
	if raw, ok := r.(*protocol.UnknownHostRequest); ok {
		return encodeUnknown(raw)
	}
	if foreign(r.Subtype()) {
		return nil, &session.UnsupportedCapabilityError{Backend: Name, Request: r.Subtype()}
	}
	return protocol.MarshalRequest(spelled(r), discriminator(r.Subtype()))
}

// encodeUnknown gives a request that came as JSON the type that the CLI's own kinds have, unless it says one itself.
func encodeUnknown(r *protocol.UnknownHostRequest) (json.RawMessage, error) {
	body, err := protocol.MarshalRequest(r, protocol.SubtypeOnly)
	if err != nil || discriminator(r.Subtype()) == protocol.SubtypeOnly {
		return body, err
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(body, &keys); err != nil {
		return nil, fmt.Errorf("qoder: encode %s request: %w", r.Subtype(), err)
	}
	if _, said := keys["type"]; said {
		return body, nil
	}
	return build.WithKey(body, "type", r.Subtype())
}

// spelled puts a request into the CLI's own words where they differ.
func spelled(r protocol.HostRequest) protocol.HostRequest {
	switch q := r.(type) {
	case *protocol.SetModelRequest:
		return spelled(*q)
	case *protocol.SetPermissionModeRequest:
		return spelled(*q)
	case *protocol.RewindRequest:
		return spelled(*q)
	case protocol.SetModelRequest:
		if q.Model == nil {
			q.Model = new(string) // "" is the default model
		}
		return q
	case protocol.SetPermissionModeRequest:
		if q.Mode == protocol.ModeYolo {
			q.Mode = protocol.ModeBypassPermissions
		}
		return q
	case protocol.RewindRequest:
		q.Scope = cmp.Or(q.Scope, "both")
		return q
	}
	return r
}

// discriminator says how the SDK names a kind: the newer ones by subtype alone.
func discriminator(subtype string) protocol.Discriminator {
	switch subtype {
	case "stop_task", "background_tasks", "set_goal", "get_goal", "clear_goal", "set_goal_max_turns",
		"set_plan_mode", "get_plan_mode", "side_question", "get_models", "cancel_async_message":
		return protocol.SubtypeOnly
	}
	return protocol.TypeAndSubtype
}

// foreign reports whether a request is Claude Code's alone.
func foreign(subtype string) bool {
	switch subtype {
	case "update_settings", "get_usage", "get_session_cost", "read_file", "get_task_output", "rename_session",
		"set_cwd", "claim_session", "list_models", "reload_output_styles", "file_suggestions", "get_binary_version",
		"get_hooks_listing", "list_permission_rules", "register_repo_root", "set_color", "get_plan", "get_status",
		"remote_control", "mcp_read_resource", "mcp_call", "set_mcp_permission_mode_override":
		return true
	}
	return false
}

// Capability implements dialect.Dialect.
func (Dialect) Capability(r protocol.HostRequest) string {
	switch r.Subtype() {
	case "stop_task", "background_tasks":
		return "background_tasks_v1"
	case "set_goal", "get_goal", "clear_goal":
		return "goal_v1"
	case "set_goal_max_turns":
		return "goal_max_turns_v1"
	case "set_plan_mode", "get_plan_mode":
		return "plan_mode_v1"
	case "side_question":
		return "side_question_v1"
	case "list_byok_configs", "create_byok_config", "update_byok_config", "delete_byok_config", "check_byok_config":
		return "byok_config_management_v1"
	case "reload_skills":
		return "reload_skills_v1"
	case "rewind":
		return "session_rewind_v1"
	case "flush_skill_evolution":
		return "skill_evolution_v1"
	}
	return ""
}

// PermissionAnswer implements dialect.Dialect. An allow always carries an input, as the SDK has it.
func (Dialect) PermissionAnswer(req *protocol.CanUseToolRequest, res protocol.PermissionResult) (json.RawMessage, error) {
	return build.PermissionAnswer(req, res)
}

// PermissionFailure implements dialect.Dialect.
func (Dialect) PermissionFailure(req *protocol.CanUseToolRequest, reason string) json.RawMessage {
	return build.PermissionFailure(req, reason)
}

// HookFailure implements dialect.Dialect. The CLI's reaction to an error answer has not been observed,
// so a gate denies in both ways that the documents have.
func (Dialect) HookFailure(event protocol.HookEvent, reason string) (json.RawMessage, string) {
	if reason == "" {
		reason = fmt.Sprintf("The host's %s hook failed.", event)
	}
	answer := map[string]any{"decision": protocol.DecisionBlock, "reason": reason}
	switch event {
	case protocol.HookPreToolUse:
		answer["hookSpecificOutput"] = map[string]any{"hookEventName": event,
			"permissionDecision": "deny", "permissionDecisionReason": reason}
	case protocol.HookPermissionRequest:
		answer["hookSpecificOutput"] = map[string]any{"hookEventName": event,
			"decision": map[string]string{"behavior": "deny", "message": reason}}
	case protocol.HookUserPromptSubmit:
	default:
		return nil, reason
	}
	return build.MustJSON(answer), ""
}

// ModelPolicyAnswer implements dialect.Dialect. A nil Model keeps the agent's own; "" is passed on, and fails the
// call. The style of a custom model is openai unless given.
func (Dialect) ModelPolicyAnswer(reply protocol.ModelPolicyReply) (json.RawMessage, error) {
	reply.Type = "get_model_policy"
	reply.SubTask = strings.TrimSpace(reply.SubTask)
	if reply.CustomModel != nil {
		custom := *reply.CustomModel
		custom.Style = cmp.Or(custom.Style, "openai")
		reply.CustomModel = &custom
	}
	return protocol.Marshal(reply)
}
