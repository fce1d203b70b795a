package protocol

import (
	"encoding/json"
	"slices"
)

// HostRequest is a control request of the host to its agent. Any type with a Subtype
// method is one, so that a host can send requests that this package does not know; see
// also [UnknownHostRequest].
type HostRequest = Request

// DecodeHostRequest decodes a control_request line of the host, for programs that
// implement an agent. The concrete types are pointers. A kind that this package does not
// know gives *[UnknownHostRequest].
func DecodeHostRequest(f Frame) (HostRequest, error) {
	r := newHostRequest(f.Subtype)
	if r == nil {
		return &UnknownHostRequest{Name: f.Subtype, Raw: slices.Clone(f.Body())}, nil
	}
	if err := decodeRequest(&f, r); err != nil {
		return nil, err
	}
	return r, nil
}

// UnknownHostRequest is a request of a kind that this package does not know,
// and the way to send one. Claude Code has some for its own products alone,
// which are not typed here.
type UnknownHostRequest struct {
	Name string // the request's subtype
	// Raw is the whole request, its kind included.
	Raw json.RawMessage
}

// Subtype implements [Request].
func (r *UnknownHostRequest) Subtype() string { return r.Name }

func (r *UnknownHostRequest) rawRequest() json.RawMessage { return orEmptyObject(r.Raw) }

// Subtype implements [Request].
func (InitializeRequest) Subtype() string { return "initialize" }

func newHostRequest(subtype string) HostRequest {
	switch subtype {
	case "initialize":
		return new(InitializeRequest)
	case "mcp_message":
		return new(MCPMessageRequest)
	case "interrupt":
		return new(InterruptRequest)
	case "set_permission_mode":
		return new(SetPermissionModeRequest)
	case "set_model":
		return new(SetModelRequest)
	case "set_max_thinking_tokens":
		return new(SetMaxThinkingTokensRequest)
	case "apply_flag_settings":
		return new(ApplyFlagSettingsRequest)
	case "update_settings":
		return new(UpdateSettingsRequest)
	case "get_settings":
		return new(GetSettingsRequest)
	case "get_context_usage":
		return new(ContextUsageRequest)
	case "get_usage":
		return new(UsageRequest)
	case "get_session_cost":
		return new(SessionCostRequest)
	case "read_file":
		return new(ReadFileRequest)
	case "rewind_files":
		return new(RewindFilesRequest)
	case "seed_read_state":
		return new(SeedReadStateRequest)
	case "stop_task":
		return new(StopTaskRequest)
	case "background_tasks":
		return new(BackgroundTasksRequest)
	case "get_task_output":
		return new(TaskOutputRequest)
	case "cancel_async_message":
		return new(CancelAsyncMessageRequest)
	case "generate_session_title":
		return new(GenerateSessionTitleRequest)
	case "rename_session":
		return new(RenameSessionRequest)
	case "side_question":
		return new(SideQuestionRequest)
	case "set_cwd":
		return new(SetCwdRequest)
	case "claim_session":
		return new(ClaimSessionRequest)
	case "end_session":
		return new(EndSessionRequest)
	case "list_models":
		return new(ListModelsRequest)
	case "get_models":
		return new(GetModelsRequest)
	case "reload_plugins":
		return new(ReloadPluginsRequest)
	case "reload_skills":
		return new(ReloadSkillsRequest)
	case "reload_output_styles":
		return new(ReloadOutputStylesRequest)
	case "list_plugins":
		return new(ListPluginsRequest)
	case "file_suggestions":
		return new(FileSuggestionsRequest)
	case "get_binary_version":
		return new(BinaryVersionRequest)
	case "get_hooks_listing":
		return new(HooksListingRequest)
	case "list_permission_rules":
		return new(ListPermissionRulesRequest)
	case "register_repo_root":
		return new(RegisterRepoRootRequest)
	case "set_color":
		return new(SetColorRequest)
	case "account_info":
		return new(AccountInfoRequest)
	case "get_usage_info":
		return new(UsageInfoRequest)
	case "add_directories":
		return new(AddDirectoriesRequest)
	case "set_proxy":
		return new(SetProxyRequest)
	case "get_plan":
		return new(GetPlanRequest)
	case "get_status":
		return new(GetStatusRequest)
	case "export_conversation":
		return new(ExportConversationRequest)
	case "submit_feedback":
		return new(SubmitFeedbackRequest)
	case "set_has_subscribers":
		return new(SetHasSubscribersRequest)
	case "remote_control":
		return new(RemoteControlRequest)
	case "mcp_status":
		return new(MCPStatusRequest)
	case "mcp_reconnect":
		return new(MCPReconnectRequest)
	case "mcp_toggle":
		return new(MCPToggleRequest)
	case "mcp_set_servers":
		return new(MCPSetServersRequest)
	case "mcp_read_resource":
		return new(MCPReadResourceRequest)
	case "mcp_call":
		return new(MCPCallRequest)
	case "mcp_authenticate":
		return new(MCPAuthenticateRequest)
	case "mcp_oauth_callback_url":
		return new(MCPOAuthCallbackURLRequest)
	case "mcp_clear_auth":
		return new(MCPClearAuthRequest)
	case "mcp_inject_token":
		return new(MCPInjectTokenRequest)
	case "set_mcp_permission_mode_override":
		return new(MCPPermissionModeOverrideRequest)
	case "set_goal":
		return new(SetGoalRequest)
	case "get_goal":
		return new(GetGoalRequest)
	case "clear_goal":
		return new(ClearGoalRequest)
	case "set_goal_max_turns":
		return new(SetGoalMaxTurnsRequest)
	case "set_plan_mode":
		return new(SetPlanModeRequest)
	case "get_plan_mode":
		return new(GetPlanModeRequest)
	case "rewind":
		return new(RewindRequest)
	case "flush_memory":
		return new(FlushMemoryRequest)
	case "refresh_memory":
		return new(RefreshMemoryRequest)
	case "flush_skill_evolution":
		return new(FlushSkillEvolutionRequest)
	case "get_byok_config":
		return new(GetBYOKConfigRequest)
	case "validate_byok_model":
		return new(ValidateBYOKModelRequest)
	case "list_byok_configs":
		return new(ListBYOKConfigsRequest)
	case "create_byok_config":
		return new(CreateBYOKConfigRequest)
	case "update_byok_config":
		return new(UpdateBYOKConfigRequest)
	case "delete_byok_config":
		return new(DeleteBYOKConfigRequest)
	case "check_byok_config":
		return new(CheckBYOKConfigRequest)
	case "enable_remote_projection":
		return new(EnableRemoteProjectionRequest)
	case "disable_remote_projection":
		return new(DisableRemoteProjectionRequest)
	}
	return nil
}
