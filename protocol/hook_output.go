package protocol

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/agent-troupe/troupe/base/jsonscan"
	"github.com/agent-troupe/troupe/base/wire"
)

// The top-level decisions of a [HookJSONOutput].
const (
	DecisionApprove = "approve"
	DecisionBlock   = "block"
)

// HookJSONOutput is a hook's answer. The zero value, {}, lets the agent continue.
//
// Claude Code takes an error answer to a PreToolUse hook as permission (observed on
// 2.1.329). A gate that fails must therefore answer with [HookDeny].
type HookJSONOutput struct {
	// Async tells the agent not to wait. AsyncTimeout is in milliseconds.
	// No other field counts then.
	Async        bool   `json:"async,omitempty"`
	AsyncTimeout Millis `json:"asyncTimeout,omitempty"` // 0: the agent's default

	// Continue false ends the turn after this hook; a PreToolUse hook does
	// not stop its tool by it (observed on Claude Code 2.1.329). nil is true.
	Continue       *bool  `json:"continue,omitempty"`
	StopReason     string `json:"stopReason,omitempty"`     // shown to the person, with Continue false
	SuppressOutput bool   `json:"suppressOutput,omitempty"` // leave the hook's output out of the transcript
	// Decision is block, or approve, which is of old.
	Decision      string `json:"decision,omitempty"`
	Reason        string `json:"reason,omitempty"`        // for the model, with Decision block
	SystemMessage string `json:"systemMessage,omitempty"` // shown to the person as a warning
	// TerminalSequence is an OSC title or notification for the agent's
	// terminal; others are dropped.
	TerminalSequence string `json:"terminalSequence,omitempty"`
	// Specific is the part that belongs to the event; nil for none.
	Specific HookSpecificOutput `json:"-"`
}

type plainHookOutput HookJSONOutput

type hookOutputJSON struct {
	plainHookOutput
	Specific json.RawMessage `json:"hookSpecificOutput,omitempty"`
}

// MarshalJSON encodes the answer with its hookSpecificOutput.
func (o HookJSONOutput) MarshalJSON() ([]byte, error) {
	if o == (HookJSONOutput{}) {
		return []byte("{}"), nil
	}
	out := hookOutputJSON{plainHookOutput: plainHookOutput(o)}
	if o.Specific != nil {
		b, err := Marshal(o.Specific)
		if err != nil {
			return nil, err
		}
		if u, ok := o.Specific.(*UnknownHookOutput); ok {
			out.Specific = orEmptyObject(u.Raw)
		} else if out.Specific, err = prefixed(b, "hookEventName", string(o.Specific.Event())); err != nil {
			return nil, err
		}
	}
	return Marshal(out)
}

// UnmarshalJSON decodes an answer as an agent reads it.
func (o *HookJSONOutput) UnmarshalJSON(b []byte) error {
	var in hookOutputJSON
	if err := Unmarshal(b, &in); err != nil {
		return err
	}
	*o = HookJSONOutput(in.plainHookOutput)
	if isNull(in.Specific) {
		return nil
	}
	event := HookEvent(jsonscan.Text(jsonscan.Get(in.Specific, "hookEventName")))
	specific := hookOutputs.New(event)
	if specific == nil {
		o.Specific = &UnknownHookOutput{Name: event, Raw: slices.Clone(in.Specific)}
		return nil
	}
	if err := Unmarshal(in.Specific, specific); err != nil {
		return fmt.Errorf("hookSpecificOutput of %s: %w", event, err)
	}
	o.Specific = specific
	return nil
}

// HookPermission is the verdict of a gate hook.
type HookPermission string

// The verdicts.
const (
	HookAllow HookPermission = "allow"
	HookDeny  HookPermission = "deny"
	// HookAsk sends the call on to the [CanUseToolRequest].
	HookAsk HookPermission = "ask"
	// HookDefer ends the turn with the call in the result's DeferredToolUse.
	HookDefer HookPermission = "defer"
)

// HookSpecificOutput is the part of an answer that belongs to one event. The
// concrete types are the pointers to this package's …Output structs.
type HookSpecificOutput interface {
	// Event is the event the output belongs to, its hookEventName.
	Event() HookEvent
}

var hookOutputs = wire.TypesBy[HookSpecificOutput](HookSpecificOutput.Event, //nolint:gochecknoglobals // only read
	new(PreToolUseOutput), new(PostToolUseOutput), new(PermissionRequestOutput), new(PermissionDeniedOutput),
	new(UserPromptSubmitOutput), new(UserPromptExpansionOutput), new(SessionStartOutput),
	new(PreModelSwitchOutput), new(WorktreeCreateOutput), new(MessageDisplayOutput),
	&ElicitationOutput{Name: HookElicitation}, &ElicitationOutput{Name: HookElicitationResult},
	&WatchPathsOutput{Name: HookCwdChanged}, &WatchPathsOutput{Name: HookFileChanged},
	&ContextOutput{Name: HookPostToolUseFailure}, &ContextOutput{Name: HookPostToolBatch},
	&ContextOutput{Name: HookNotification}, &ContextOutput{Name: HookSetup}, &ContextOutput{Name: HookStop},
	&ContextOutput{Name: HookSubagentStart}, &ContextOutput{Name: HookSubagentStop},
	&ContextOutput{Name: HookPostModelSwitch},
)

// PreToolUseOutput decides on a tool call.
type PreToolUseOutput struct {
	// PermissionDecision "" leaves the decision to others.
	PermissionDecision       HookPermission `json:"permissionDecision,omitempty"`
	PermissionDecisionReason string         `json:"permissionDecisionReason,omitempty"` // with deny for the model, else for the person
	// UpdatedInput replaces the tool's input, also without a decision.
	UpdatedInput      json.RawMessage `json:"updatedInput,omitempty"`
	AdditionalContext string          `json:"additionalContext,omitempty"` // text for the model; "": none
}

// PostToolUseOutput changes what the model reads of a tool's output.
type PostToolUseOutput struct {
	AdditionalContext string `json:"additionalContext,omitempty"` // text for the model; "": none
	ClassifierContext string `json:"classifierContext,omitempty"` // text for the classifier of permission mode auto, not for the model
	// UpdatedToolOutput must have the shape of the tool's output: Claude
	// Code ignored a string for Bash (observed on 2.1.329).
	UpdatedToolOutput json.RawMessage `json:"updatedToolOutput,omitempty"`
	// UpdatedMCPToolOutput replaces the content of an MCP tool's result.
	UpdatedMCPToolOutput json.RawMessage `json:"updatedMCPToolOutput,omitempty"`
}

// PermissionRequestOutput decides in place of a person. The zero value denies.
type PermissionRequestOutput struct {
	Decision PermissionResult `json:"decision"` // only Behavior, inputs, updates, Message and Interrupt count
}

// PermissionDeniedOutput may ask the model to try again.
type PermissionDeniedOutput struct {
	Retry bool `json:"retry,omitempty"` // the model may make the call again
}

// UserPromptSubmitOutput adds to a prompt.
type UserPromptSubmitOutput struct {
	AdditionalContext      string `json:"additionalContext,omitempty"`      // text for the model, with the prompt; "": none
	SessionTitle           string `json:"sessionTitle,omitempty"`           // a new title; "": unchanged
	SuppressOriginalPrompt bool   `json:"suppressOriginalPrompt,omitempty"` // a block does not repeat the prompt
}

// UserPromptExpansionOutput adds to an expanded prompt.
type UserPromptExpansionOutput struct {
	AdditionalContext      string `json:"additionalContext,omitempty"`      // text for the model, with the prompt; "": none
	SuppressOriginalPrompt bool   `json:"suppressOriginalPrompt,omitempty"` // a block does not repeat the prompt
}

// SessionStartOutput adds to a new session.
type SessionStartOutput struct {
	AdditionalContext  string   `json:"additionalContext,omitempty"`  // text for the model; "": none
	InitialUserMessage string   `json:"initialUserMessage,omitempty"` // the first prompt; "": none
	SessionTitle       string   `json:"sessionTitle,omitempty"`       // a new title; "": unchanged
	WatchPaths         []string `json:"watchPaths,omitempty"`         // absolute paths for FileChanged hooks
	ReloadSkills       bool     `json:"reloadSkills,omitempty"`       // look for skills again, after the hook may have added some
}

// PreModelSwitchOutput decides on a change of the model.
type PreModelSwitchOutput struct {
	PermissionDecision       HookPermission `json:"permissionDecision,omitempty"`       // allow, deny, ask
	PermissionDecisionReason string         `json:"permissionDecisionReason,omitempty"` // for the person
}

// ElicitationOutput answers in place of a person, for the events Elicitation
// and ElicitationResult.
type ElicitationOutput struct {
	Name    HookEvent       `json:"-"`                 // [HookElicitation] or [HookElicitationResult]
	Action  string          `json:"action,omitempty"`  // accept, decline, cancel
	Content json.RawMessage `json:"content,omitempty"` // an object of the requested schema; only with accept
}

// WatchPathsOutput asks for more files to be watched, for the events
// CwdChanged and FileChanged.
type WatchPathsOutput struct {
	Name       HookEvent `json:"-"`                    // [HookCwdChanged] or [HookFileChanged]
	WatchPaths []string  `json:"watchPaths,omitempty"` // absolute; they replace those of the hook before
}

// WorktreeCreateOutput says where the worktree is.
type WorktreeCreateOutput struct {
	WorktreePath string `json:"worktreePath"` // absolute
}

// MessageDisplayOutput replaces the text that is shown.
type MessageDisplayOutput struct {
	DisplayContent string `json:"displayContent,omitempty"` // shown in place of the delta; "": the delta
}

// ContextOutput adds context. It is the output of events that allow nothing else: Notification,
// PostModelSwitch, PostToolBatch, PostToolUseFailure, Setup, Stop,
// SubagentStart and SubagentStop.
type ContextOutput struct {
	Name              HookEvent `json:"-"`                           // one of the events listed above
	AdditionalContext string    `json:"additionalContext,omitempty"` // text for the model; "": none
}

// UnknownHookOutput is the part for an event that this package does not know.
type UnknownHookOutput struct {
	Name HookEvent       `json:"-"` // the event
	Raw  json.RawMessage `json:"-"` // the whole hookSpecificOutput, an object
}

// Event implements [HookSpecificOutput].
func (*PreToolUseOutput) Event() HookEvent { return HookPreToolUse }

// Event implements [HookSpecificOutput].
func (*PostToolUseOutput) Event() HookEvent { return HookPostToolUse }

// Event implements [HookSpecificOutput].
func (*PermissionRequestOutput) Event() HookEvent { return HookPermissionRequest }

// Event implements [HookSpecificOutput].
func (*PermissionDeniedOutput) Event() HookEvent { return HookPermissionDenied }

// Event implements [HookSpecificOutput].
func (*UserPromptSubmitOutput) Event() HookEvent { return HookUserPromptSubmit }

// Event implements [HookSpecificOutput].
func (*UserPromptExpansionOutput) Event() HookEvent { return HookUserPromptExpansion }

// Event implements [HookSpecificOutput].
func (*SessionStartOutput) Event() HookEvent { return HookSessionStart }

// Event implements [HookSpecificOutput].
func (*PreModelSwitchOutput) Event() HookEvent { return HookPreModelSwitch }

// Event implements [HookSpecificOutput].
func (o *ElicitationOutput) Event() HookEvent { return o.Name }

// Event implements [HookSpecificOutput].
func (o *WatchPathsOutput) Event() HookEvent { return o.Name }

// Event implements [HookSpecificOutput].
func (*WorktreeCreateOutput) Event() HookEvent { return HookWorktreeCreate }

// Event implements [HookSpecificOutput].
func (*MessageDisplayOutput) Event() HookEvent { return HookMessageDisplay }

// Event implements [HookSpecificOutput].
func (o *ContextOutput) Event() HookEvent { return o.Name }

// Event implements [HookSpecificOutput].
func (o *UnknownHookOutput) Event() HookEvent { return o.Name }
