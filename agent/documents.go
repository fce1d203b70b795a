package agent

import "github.com/agent-troupe/troupe/protocol"

// document is the answer to a request that only reads or that the engine takes
// note of without doing anything; ok is false for a subtype the CLI does not
// know. A nil answer is a bare success.
func (e *engine) document(request protocol.HostRequest) (answer any, ok bool) {
	if e.cfg.Dialect == Qoder {
		return e.qoderDocument(request)
	}
	switch request.Subtype() {
	case "set_max_thinking_tokens", "apply_flag_settings", "update_settings", "seed_read_state",
		"rename_session", "set_color", "set_has_subscribers", "register_repo_root", "mcp_message",
		"end_session", "set_cwd":
		return nil, true
	case "claim_session":
		return Object{"status": "ok", "session_id": e.session.id, "sdk_mcp_settled": true}, true
	case "set_mcp_permission_mode_override", "background_tasks", "reload_output_styles", "get_hooks_listing",
		"list_permission_rules", "get_plan", "submit_feedback":
		return Object{}, true
	case "get_context_usage":
		return Object{
			"categories": []any{Object{
				"id": "free_space", "name": "Free space", "tokens": 999000, "color": "promptBorder", "kind": "free",
			}},
			"totalTokens": 1000, "maxTokens": 1000000, "rawMaxTokens": 1000000, "percentage": 0,
			"gridRows": []any{}, "model": e.session.model,
		}, true
	case "get_usage":
		return Object{
			"session":           Object{"total_cost_usd": e.spent, "model_usage": e.modelUsage()},
			"subscription_type": nil, "rate_limits_available": false, "rate_limits": nil, "behaviors": nil,
		}, true
	case "get_session_cost":
		return Object{"total_cost_usd": e.spent}, true
	case "get_settings":
		return Object{"sources": Object{}, "effective": Object{}}, true
	case "get_status":
		return Object{"state": e.state}, true
	case "get_binary_version":
		return Object{"version": e.tr.version}, true
	case "list_models":
		return Object{"models": e.models()}, true
	case "file_suggestions":
		return Object{"suggestions": []any{}}, true
	case "get_task_output":
		return Object{"output": ""}, true
	case "reload_plugins":
		return Object{"commands": []any{}, "agents": []any{}, "plugins": []any{}, "mcpServers": []any{}, "error_count": 0}, true
	case "reload_skills":
		return Object{"skills": []any{}}, true
	case "generate_session_title":
		return Object{"title": "Scripted session"}, true
	case "side_question":
		return Object{"response": "Scripted answer.", "synthetic": true}, true
	}
	return nil, false
}

func (e *engine) qoderDocument(request protocol.HostRequest) (answer any, ok bool) {
	switch in := request.(type) {
	case *protocol.SetPlanModeRequest:
		mode := "default"
		if in.Active {
			mode = "plan"
		}
		e.perms.change(e, mode)
		return Object{"plan_mode": Object{"active": in.Active}}, true
	case *protocol.RewindRequest:
		return Object{
			"status": "rejected", "targetUserMessageId": in.UserMessageID, "scope": "both",
			"error": "Rewind target is not an eligible human input: " + in.UserMessageID,
		}, true
	case *protocol.BackgroundTasksRequest:
		if in.ToolUseID != "" {
			return Object{"backgrounded": false}, true
		}
		return nil, true
	}
	switch request.Subtype() {
	case "set_max_thinking_tokens", "seed_read_state", "mcp_clear_auth", "mcp_message", "end_session",
		"mcp_inject_token", "control_cancel":
		return nil, true
	case "flush_memory", "refresh_memory", "flush_skill_evolution":
		return Object{}, true
	case "get_plan_mode":
		return Object{"plan_mode": Object{"active": e.perms.mode == "plan"}}, true
	case "set_proxy":
		return Object{"proxy": nil}, true
	case "generate_session_title":
		return Object{"title": nil}, true
	case "side_question":
		return Object{"response": "Scripted answer.", "synthetic": true}, true
	case "add_directories":
		return Object{"added": []any{}, "failed": []any{}, "directories": []any{e.session.cwd}}, true
	case "apply_flag_settings":
		return Object{"applied": Object{"effort": nil, "ultracode": false}}, true
	case "get_settings":
		return Object{"sources": Object{"user": Object{}, "workspace": Object{}, "local": Object{}, "flag": Object{}}, "effective": Object{}}, true
	case "get_models":
		return Object{"models": e.models()}, true
	case "get_context_usage":
		return Object{
			"model": e.session.model, "contextWindow": Object{"usedPercentage": 0.4},
			"categories":  []any{Object{"type": "free_space", "percentage": 99.6}},
			"autoCompact": Object{"enabled": false},
		}, true
	case "get_usage_info":
		return Object{"usage": nil, "session": Object{"total_credits": 0, "model_usage": Object{}}}, true
	case "account_info":
		return Object{"account": Object{}}, true
	case "set_goal", "get_goal":
		return Object{"goal": nil}, true
	case "clear_goal":
		return Object{"cleared": true}, true
	case "set_goal_max_turns":
		return Object{"goal_max_turns": 100}, true
	case "reload_plugins":
		return Object{"commands": []any{}, "agents": []any{}, "plugins": []any{}}, true
	case "reload_skills":
		return Object{"skills": []any{}}, true
	case "list_plugins":
		return Object{"plugins": []any{}}, true
	case "get_byok_config":
		return Object{"providers": []any{}}, true
	case "list_byok_configs":
		return Object{"configs": []any{}}, true
	case "validate_byok_model":
		return Object{"success": false}, true
	}
	return nil, false
}
