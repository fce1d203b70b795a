package protocol

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/agent-troupe/troupe/base/jsonscan"
	"github.com/agent-troupe/troupe/base/wire"
)

// HookInput is what a hook is called with. The concrete types are the pointers
// to this package's …Input structs.
type HookInput interface {
	// Base is what all events have in common.
	Base() *HookBase
	// Event is the event the input belongs to.
	Event() HookEvent
}

// HookBase is embedded in every hook input.
type HookBase struct {
	HookEventName  HookEvent      `json:"hook_event_name"`           // selects the type of the input
	SessionID      string         `json:"session_id"`                // the agent's session
	TranscriptPath string         `json:"transcript_path"`           // the transcript's file on the agent's machine, JSON lines
	Cwd            string         `json:"cwd"`                       // the session's working directory
	PromptID       string         `json:"prompt_id,omitempty"`       // uuid of the prompt that this belongs to; "" before the first
	PermissionMode PermissionMode `json:"permission_mode,omitempty"` // "": not sent
	// AgentID and AgentType are set inside a subagent.
	AgentID   string      `json:"agent_id,omitempty"`
	AgentType string      `json:"agent_type,omitempty"` // also set in a session started with --agent, without AgentID
	Effort    *HookEffort `json:"effort,omitempty"`     // nil: not sent
}

// Base implements [HookInput].
func (b *HookBase) Base() *HookBase { return b }

// Event implements [HookInput].
func (b *HookBase) Event() HookEvent { return b.HookEventName }

// HookEffort is the model's effort.
type HookEffort struct {
	Level string `json:"level"` // low, medium, high, xhigh, max: what the model gets
}

// MCPServerProvenance says where an MCP server was configured.
type MCPServerProvenance struct {
	Name   string `json:"name"`   // as configured
	Source string `json:"source"` // sdk, plugin, user, project, local, dynamic, managed, enterprise, claudeai, agent, …
}

// UnknownHookInput is the input of an event that this package does not know.
type UnknownHookInput struct {
	HookBase
	Raw json.RawMessage `json:"-"` // the whole input
}

// DecodeHookInput decodes the input of a hook callback by its
// hook_event_name. An unknown event, or none, gives *[UnknownHookInput].
func DecodeHookInput(raw json.RawMessage) (HookInput, error) {
	event := HookEvent(jsonscan.Text(jsonscan.Get(raw, "hook_event_name")))
	in := hookInputs.New(event)
	if in == nil {
		in = &UnknownHookInput{Raw: slices.Clone(raw)}
	}
	if err := Unmarshal(raw, in); err != nil {
		return nil, fmt.Errorf("protocol: decode input of hook %q: %w", event, err)
	}
	return in, nil
}

var hookInputs = wire.Types[HookEvent, HookInput]{ //nolint:gochecknoglobals // only read
	HookPreToolUse:          new(PreToolUseInput),
	HookPostToolUse:         new(PostToolUseInput),
	HookPostToolUseFailure:  new(PostToolUseFailureInput),
	HookPostToolBatch:       new(PostToolBatchInput),
	HookNotification:        new(NotificationInput),
	HookUserPromptSubmit:    new(UserPromptSubmitInput),
	HookUserPromptExpansion: new(UserPromptExpansionInput),
	HookSessionStart:        new(SessionStartInput),
	HookSessionEnd:          new(SessionEndInput),
	HookStop:                new(StopInput),
	HookStopFailure:         new(StopFailureInput),
	HookSubagentStart:       new(SubagentStartInput),
	HookSubagentStop:        new(SubagentStopInput),
	HookPreCompact:          new(PreCompactInput),
	HookPostCompact:         new(PostCompactInput),
	HookPreModelSwitch:      new(PreModelSwitchInput),
	HookPostModelSwitch:     new(PostModelSwitchInput),
	HookPermissionRequest:   new(PermissionRequestInput),
	HookPermissionDenied:    new(PermissionDeniedInput),
	HookSetup:               new(SetupInput),
	HookTeammateIdle:        new(TeammateIdleInput),
	HookTaskCreated:         new(TaskCreatedInput),
	HookTaskCompleted:       new(TaskCompletedInput),
	HookElicitation:         new(ElicitationInput),
	HookElicitationResult:   new(ElicitationResultInput),
	HookConfigChange:        new(ConfigChangeInput),
	HookWorktreeCreate:      new(WorktreeCreateInput),
	HookWorktreeRemove:      new(WorktreeRemoveInput),
	HookInstructionsLoaded:  new(InstructionsLoadedInput),
	HookCwdChanged:          new(CwdChangedInput),
	HookFileChanged:         new(FileChangedInput),
	HookDirectoryAdded:      new(DirectoryAddedInput),
	HookMessageDisplay:      new(MessageDisplayInput),
}
