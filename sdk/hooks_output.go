package sdk

import (
	"encoding/json"
	"reflect"
	"time"

	"github.com/agent-troupe/troupe/protocol"
)

// HookCommon has the fields of every hook output.
type HookCommon struct {
	// Continue ends the turn after this hook if it is Some(false). The tool call of a
	// PreToolUse hook still runs (observed on Claude Code 2.1.329). Absent: true.
	Continue   Opt[bool]
	StopReason string // shown to the person if Continue is false
	// SuppressOutput keeps the output of the hook out of the transcript.
	SuppressOutput bool
	// SystemMessage is shown to the person.
	SystemMessage    string
	TerminalSequence string // an OSC title or notification for the agent's terminal
	// Async tells the agent to continue without waiting for the hook's result. A later
	// result counts within AsyncTimeout. All other fields are ignored then.
	Async        bool
	AsyncTimeout time.Duration // see Async; 0: the agent's default
}

func (c HookCommon) json(specific protocol.HookSpecificOutput) protocol.HookJSONOutput {
	out := protocol.HookJSONOutput{
		StopReason: c.StopReason, SuppressOutput: c.SuppressOutput, SystemMessage: c.SystemMessage,
		TerminalSequence: c.TerminalSequence, Async: c.Async,
		AsyncTimeout: protocol.Millis(c.AsyncTimeout) / protocol.Millis(time.Millisecond), Specific: specific,
	}
	if v, given := c.Continue.Value(); given {
		out.Continue = &v
	}
	return out
}

func (c HookCommon) decided(decision, reason string, specific protocol.HookSpecificOutput) protocol.HookJSONOutput {
	out := c.json(specific)
	out.Decision, out.Reason = decision, reason
	return out
}

// HookOutput is the output of events that a hook cannot decide about.
type HookOutput struct{ HookCommon }

// BlockOutput is the output of events that a hook can block.
type BlockOutput struct {
	// Decision is DecisionBlock, or "" to let the agent continue. Reason says why.
	Decision, Reason string
	HookCommon
}

// PreToolUseOutput decides about a tool call.
type PreToolUseOutput struct {
	// PermissionDecision is protocol.HookAllow, protocol.HookDeny, protocol.HookAsk or protocol.HookDefer; "": the hook
	// does not decide. After protocol.HookAllow, CanUseTool is not called.
	PermissionDecision       protocol.HookPermission
	PermissionDecisionReason string // shown to the model with protocol.HookDeny, otherwise to the person
	// UpdatedInput replaces the tool's input, also without a decision. It is a JSON
	// object; nil: the input is unchanged.
	UpdatedInput json.RawMessage
	// AdditionalContext is added to the context of the model.
	AdditionalContext string
	HookCommon
}

// DenyPreToolUse denies the call. The model reads reason.
func DenyPreToolUse(reason string) PreToolUseOutput {
	return PreToolUseOutput{PermissionDecision: protocol.HookDeny, PermissionDecisionReason: reason}
}

// PostToolUseOutput changes what the model reads of a tool's output.
type PostToolUseOutput struct {
	// Decision is DecisionBlock, which shows Reason to the model, or "".
	Decision, Reason string
	// AdditionalContext is added to the context of the model.
	AdditionalContext string
	ClassifierContext string // for the classifier of permission mode auto, not for the model
	// UpdatedToolOutput replaces the tool's output; nil: the output is unchanged. It
	// must have the shape of the tool's own output: Claude Code ignored a string for
	// Bash (observed on 2.1.329).
	UpdatedToolOutput json.RawMessage
	// UpdatedMCPToolOutput replaces the content of an MCP tool's result; nil: the
	// content is unchanged.
	UpdatedMCPToolOutput json.RawMessage
	HookCommon
}

// ContextOutput adds context for the model.
type ContextOutput struct {
	// AdditionalContext is added to the context of the model.
	AdditionalContext string
	HookCommon
}

// FeedbackOutput gives the model feedback about what has happened.
type FeedbackOutput struct {
	// Decision is DecisionBlock or "". DecisionBlock makes the agent continue (Stop,
	// SubagentStop), ends the turn (PostToolBatch, observed on Claude Code 2.1.329), or
	// shows Reason to the model (all other events).
	Decision, Reason string
	// AdditionalContext is added to the context of the model.
	AdditionalContext string
	HookCommon
}

// UserPromptSubmitOutput adds context to a prompt, or blocks it.
type UserPromptSubmitOutput struct {
	// Decision is DecisionBlock, which ends the turn without a call of the model, or "".
	Decision, Reason       string
	AdditionalContext      string // added to the context of the model, with the prompt
	SessionTitle           string // new title of the session; "": unchanged
	SuppressOriginalPrompt bool   // leaves the prompt out of the message about a block
	HookCommon
}

// UserPromptExpansionOutput adds context to an expanded prompt, or blocks it.
type UserPromptExpansionOutput struct {
	// Decision is DecisionBlock, or "" to let the agent continue. Reason says why.
	Decision, Reason       string
	AdditionalContext      string // added to the context of the model, with the prompt
	SuppressOriginalPrompt bool   // leaves the prompt out of the message about a block
	HookCommon
}

// SessionStartOutput configures a session that starts.
type SessionStartOutput struct {
	AdditionalContext  string   // added to the context of the model
	InitialUserMessage string   // the first prompt; "": no prompt
	SessionTitle       string   // new title of the session; "": unchanged
	WatchPaths         []string // absolute paths of files to watch for FileChanged hooks
	ReloadSkills       bool     // loads the skills again, because the hook may have added some
	HookCommon
}

// PreModelSwitchOutput decides about a change of the model.
type PreModelSwitchOutput struct {
	PermissionDecision       protocol.HookPermission // "", protocol.HookAllow, protocol.HookDeny or protocol.HookAsk
	PermissionDecisionReason string                  // shown to the person
	HookCommon
}

// PermissionRequestOutput decides about a tool call instead of a person.
type PermissionRequestOutput struct {
	// Decision is the answer; nil: the hook does not decide.
	Decision *PermissionResult
	HookCommon
}

// PermissionDeniedOutput says whether the model may try a denied call again.
type PermissionDeniedOutput struct {
	Retry bool // the model may make the call again
	HookCommon
}

// ElicitationOutput answers the question of an MCP server instead of a person.
type ElicitationOutput struct {
	// Action is "", accept, decline or cancel; Content belongs to accept. From a
	// callback, Claude Code 2.1.329 treats a cancel as a decline, and ignores accept and
	// Content, which work in command hooks only.
	Action  string
	Content json.RawMessage // a JSON object that fits the requested schema
	HookCommon
}

// WatchPathsOutput sets the files to watch.
type WatchPathsOutput struct {
	WatchPaths []string // absolute paths; they replace those of the previous hook
	HookCommon
}

// WorktreeCreateOutput has the path of the worktree.
type WorktreeCreateOutput struct {
	WorktreePath string // absolute path
	HookCommon
}

// MessageDisplayOutput replaces the text that is shown.
type MessageDisplayOutput struct {
	DisplayContent string // the text to show; "": the text is unchanged
	HookCommon
}

func (o HookOutput) wire(protocol.HookEvent) protocol.HookJSONOutput { return o.json(nil) }

func (o BlockOutput) wire(protocol.HookEvent) protocol.HookJSONOutput {
	return o.decided(o.Decision, o.Reason, nil)
}

func (o PreToolUseOutput) wire(protocol.HookEvent) protocol.HookJSONOutput {
	return o.json(given(protocol.PreToolUseOutput{
		PermissionDecision: o.PermissionDecision, PermissionDecisionReason: o.PermissionDecisionReason,
		UpdatedInput: o.UpdatedInput, AdditionalContext: o.AdditionalContext,
	}))
}

func (o PostToolUseOutput) wire(protocol.HookEvent) protocol.HookJSONOutput {
	return o.decided(o.Decision, o.Reason, given(protocol.PostToolUseOutput{
		AdditionalContext: o.AdditionalContext, ClassifierContext: o.ClassifierContext,
		UpdatedToolOutput: o.UpdatedToolOutput, UpdatedMCPToolOutput: o.UpdatedMCPToolOutput,
	}))
}

// given is what an answer says about its event; nil if it says nothing.
func given[T any, P interface {
	*T
	protocol.HookSpecificOutput
}](v T) protocol.HookSpecificOutput {
	if reflect.ValueOf(v).IsZero() {
		return nil
	}
	return P(&v)
}

func (o ContextOutput) wire(event protocol.HookEvent) protocol.HookJSONOutput {
	return o.json(told(event, o.AdditionalContext))
}

func (o FeedbackOutput) wire(event protocol.HookEvent) protocol.HookJSONOutput {
	return o.decided(o.Decision, o.Reason, told(event, o.AdditionalContext))
}

// told is the part of an output with context for the model.
func told(event protocol.HookEvent, text string) protocol.HookSpecificOutput {
	if text == "" {
		return nil
	}
	return &protocol.ContextOutput{Name: event, AdditionalContext: text}
}

func (o UserPromptSubmitOutput) wire(protocol.HookEvent) protocol.HookJSONOutput {
	return o.decided(o.Decision, o.Reason, given(protocol.UserPromptSubmitOutput{
		AdditionalContext: o.AdditionalContext, SessionTitle: o.SessionTitle, SuppressOriginalPrompt: o.SuppressOriginalPrompt,
	}))
}

func (o UserPromptExpansionOutput) wire(protocol.HookEvent) protocol.HookJSONOutput {
	return o.decided(o.Decision, o.Reason, given(protocol.UserPromptExpansionOutput{
		AdditionalContext: o.AdditionalContext, SuppressOriginalPrompt: o.SuppressOriginalPrompt,
	}))
}

func (o SessionStartOutput) wire(protocol.HookEvent) protocol.HookJSONOutput {
	return o.json(given(protocol.SessionStartOutput{
		AdditionalContext: o.AdditionalContext, InitialUserMessage: o.InitialUserMessage,
		SessionTitle: o.SessionTitle, WatchPaths: o.WatchPaths, ReloadSkills: o.ReloadSkills,
	}))
}

func (o PreModelSwitchOutput) wire(protocol.HookEvent) protocol.HookJSONOutput {
	return o.json(given(protocol.PreModelSwitchOutput{PermissionDecision: o.PermissionDecision, PermissionDecisionReason: o.PermissionDecisionReason}))
}

func (o PermissionRequestOutput) wire(protocol.HookEvent) protocol.HookJSONOutput {
	if o.Decision == nil {
		return o.json(nil)
	}
	return o.json(&protocol.PermissionRequestOutput{Decision: *o.Decision})
}

func (o PermissionDeniedOutput) wire(protocol.HookEvent) protocol.HookJSONOutput {
	return o.json(given(protocol.PermissionDeniedOutput{Retry: o.Retry}))
}

func (o ElicitationOutput) wire(event protocol.HookEvent) protocol.HookJSONOutput {
	if o.Action == "" && o.Content == nil {
		return o.json(nil)
	}
	decision := ""
	if o.Action == protocol.ElicitDecline || o.Action == protocol.ElicitCancel {
		decision = protocol.DecisionBlock // the key that the agent reads from callbacks
	}
	return o.decided(decision, "", &protocol.ElicitationOutput{Name: event, Action: o.Action, Content: o.Content})
}

func (o WatchPathsOutput) wire(event protocol.HookEvent) protocol.HookJSONOutput {
	if o.WatchPaths == nil {
		return o.json(nil)
	}
	return o.json(&protocol.WatchPathsOutput{Name: event, WatchPaths: o.WatchPaths})
}

func (o WorktreeCreateOutput) wire(protocol.HookEvent) protocol.HookJSONOutput {
	return o.json(given(protocol.WorktreeCreateOutput{WorktreePath: o.WorktreePath}))
}

func (o MessageDisplayOutput) wire(protocol.HookEvent) protocol.HookJSONOutput {
	return o.json(given(protocol.MessageDisplayOutput{DisplayContent: o.DisplayContent}))
}
