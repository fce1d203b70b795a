package protocol

import (
	"encoding/json"
	"slices"

	"github.com/agent-troupe/troupe/base/wire"
)

// HostRequest is a control request of the host to its agent. Any type with a Subtype
// method is one, so that a host can send requests that this package does not know; see
// also [UnknownHostRequest].
type HostRequest = Request

// DecodeHostRequest decodes a control_request line of the host, for programs that
// implement an agent. The concrete types are pointers. A kind that this package does not
// know gives *[UnknownHostRequest].
func DecodeHostRequest(f Frame) (HostRequest, error) {
	r := hostRequests.New(f.Subtype)
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

var hostRequests = wire.TypesBy[HostRequest](HostRequest.Subtype, //nolint:gochecknoglobals // only read
	new(InitializeRequest), new(MCPMessageRequest), new(InterruptRequest), new(SetPermissionModeRequest),
	new(SetModelRequest), new(SetMaxThinkingTokensRequest), new(ApplyFlagSettingsRequest),
	new(UpdateSettingsRequest), new(GetSettingsRequest), new(ContextUsageRequest), new(UsageRequest),
	new(SessionCostRequest), new(ReadFileRequest), new(RewindFilesRequest), new(SeedReadStateRequest),
	new(StopTaskRequest), new(BackgroundTasksRequest), new(TaskOutputRequest), new(CancelAsyncMessageRequest),
	new(GenerateSessionTitleRequest), new(RenameSessionRequest), new(SideQuestionRequest), new(SetCwdRequest),
	new(ClaimSessionRequest), new(EndSessionRequest), new(ListModelsRequest), new(GetModelsRequest),
	new(ReloadPluginsRequest), new(ReloadSkillsRequest), new(ReloadOutputStylesRequest),
	new(ListPluginsRequest), new(FileSuggestionsRequest), new(BinaryVersionRequest), new(HooksListingRequest),
	new(ListPermissionRulesRequest), new(RegisterRepoRootRequest), new(SetColorRequest),
	new(AccountInfoRequest), new(UsageInfoRequest), new(AddDirectoriesRequest), new(SetProxyRequest),
	new(GetPlanRequest), new(GetStatusRequest), new(ExportConversationRequest), new(SubmitFeedbackRequest),
	new(SetHasSubscribersRequest), new(RemoteControlRequest), new(MCPStatusRequest), new(MCPReconnectRequest),
	new(MCPToggleRequest), new(MCPSetServersRequest), new(MCPReadResourceRequest), new(MCPCallRequest),
	new(MCPAuthenticateRequest), new(MCPOAuthCallbackURLRequest), new(MCPClearAuthRequest),
	new(MCPInjectTokenRequest), new(MCPPermissionModeOverrideRequest), new(SetGoalRequest),
	new(GetGoalRequest), new(ClearGoalRequest), new(SetGoalMaxTurnsRequest), new(SetPlanModeRequest),
	new(GetPlanModeRequest), new(RewindRequest), new(FlushMemoryRequest), new(RefreshMemoryRequest),
	new(FlushSkillEvolutionRequest), new(GetBYOKConfigRequest), new(ValidateBYOKModelRequest),
	new(ListBYOKConfigsRequest), new(CreateBYOKConfigRequest), new(UpdateBYOKConfigRequest),
	new(DeleteBYOKConfigRequest), new(CheckBYOKConfigRequest), new(EnableRemoteProjectionRequest),
	new(DisableRemoteProjectionRequest),
)
