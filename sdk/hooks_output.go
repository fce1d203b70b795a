package sdk

import (
	"encoding/json"
	"time"

	"github.com/agent-troupe/troupe/protocol"
)

// Values of Decision in hook outputs. DecisionApprove is of old.
const (
	DecisionApprove = protocol.DecisionApprove
	DecisionBlock   = protocol.DecisionBlock
)

// HookPermission is the verdict of a gate hook. HookAsk sends the call on to
// CanUseTool; HookDefer ends the turn with the call in the result's
// DeferredToolUse. It is [protocol.HookPermission].
type HookPermission = protocol.HookPermission

// The verdicts.
const (
	HookAllow = protocol.HookAllow
	HookDeny  = protocol.HookDeny
	HookAsk   = protocol.HookAsk
	HookDefer = protocol.HookDefer
)

// HookCommon is what every hook output may say.
type HookCommon struct {
	// Continue false ends the turn after this hook, for StopReason. It does not
	// stop the tool of a PreToolUse hook (observed on Claude Code 2.1.329).
	// Absent: true.
	Continue   Opt[bool]
	StopReason string // for the person, with Continue false
	// SuppressOutput keeps the hook out of the transcript.
	SuppressOutput bool
	// SystemMessage is shown to the user.
	SystemMessage    string
	TerminalSequence string // an OSC title or notification for the agent's terminal
	// Async tells the agent not to wait, at most AsyncTimeout for what comes
	// later; no other field counts then.
	Async        bool
	AsyncTimeout time.Duration // 0: the agent's default
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

// HookOutput is the output of events that allow no decision.
type HookOutput struct{ HookCommon }

// BlockOutput is the output of events that can be kept from happening.
type BlockOutput struct {
	// Decision is DecisionBlock, or "" to go on. Reason says why.
	Decision, Reason string
	HookCommon
}

// PreToolUseOutput decides on a tool call.
type PreToolUseOutput struct {
	// PermissionDecision "" leaves the decision to others. HookAllow skips
	// CanUseTool.
	PermissionDecision       HookPermission
	PermissionDecisionReason string // with HookDeny for the model, else for the person
	// UpdatedInput replaces the tool's input, also without a decision.
	UpdatedInput json.RawMessage
	// AdditionalContext is told to the model.
	AdditionalContext string
	HookCommon
}

// DenyPreToolUse keeps the call from running; the model reads why.
func DenyPreToolUse(reason string) PreToolUseOutput {
	return PreToolUseOutput{PermissionDecision: HookDeny, PermissionDecisionReason: reason}
}

// PostToolUseOutput changes what the model sees of a tool's output.
type PostToolUseOutput struct {
	// Decision DecisionBlock shows Reason to the model.
	Decision, Reason string
	// AdditionalContext is told to the model.
	AdditionalContext string
	ClassifierContext string // for the classifier of permission mode auto, not for the model
	// UpdatedToolOutput must have the shape of the tool's output: Claude Code
	// ignored a string for Bash (observed on 2.1.329).
	UpdatedToolOutput json.RawMessage
	// UpdatedMCPToolOutput replaces the content of an MCP tool's result.
	UpdatedMCPToolOutput json.RawMessage
	HookCommon
}

// ContextOutput adds context.
type ContextOutput struct {
	// AdditionalContext is told to the model.
	AdditionalContext string
	HookCommon
}

// FeedbackOutput tells the model something after the fact.
type FeedbackOutput struct {
	// Decision DecisionBlock sends the agent back to work (Stop, SubagentStop),
	// ends the turn (PostToolBatch, observed on Claude Code 2.1.329) or shows
	// Reason to the model.
	Decision, Reason string
	// AdditionalContext is told to the model.
	AdditionalContext string
	HookCommon
}

// UserPromptSubmitOutput adds to a prompt, or keeps it from the model.
type UserPromptSubmitOutput struct {
	// Decision DecisionBlock ends the turn without a call of the model.
	Decision, Reason       string
	AdditionalContext      string // for the model, with the prompt
	SessionTitle           string // a new title; "": unchanged
	SuppressOriginalPrompt bool   // a block does not repeat the prompt
	HookCommon
}

// UserPromptExpansionOutput adds to an expanded prompt, or keeps it from the
// model.
type UserPromptExpansionOutput struct {
	// Decision is DecisionBlock, or "" to go on. Reason says why.
	Decision, Reason       string
	AdditionalContext      string // for the model, with the prompt
	SuppressOriginalPrompt bool   // a block does not repeat the prompt
	HookCommon
}

// SessionStartOutput adds to a new session.
type SessionStartOutput struct {
	AdditionalContext  string   // for the model
	InitialUserMessage string   // the first prompt; "": none
	SessionTitle       string   // a new title; "": unchanged
	WatchPaths         []string // absolute; changes call FileChanged hooks
	ReloadSkills       bool     // look for skills again, after the hook may have added some
	HookCommon
}

// PreModelSwitchOutput decides on a change of the model.
type PreModelSwitchOutput struct {
	PermissionDecision       HookPermission // "", HookAllow, HookDeny or HookAsk
	PermissionDecisionReason string         // for the person
	HookCommon
}

// PermissionRequestOutput decides in place of a person.
type PermissionRequestOutput struct {
	// Decision nil leaves it to others.
	Decision *PermissionResult
	HookCommon
}

// PermissionDeniedOutput may ask the model to try again.
type PermissionDeniedOutput struct {
	Retry bool // the model may make the call again
	HookCommon
}

// ElicitationOutput answers in place of a person.
type ElicitationOutput struct {
	// Action is "", accept, decline or cancel; Content goes with accept. Claude
	// Code 2.1.329 treats a cancel from a callback as a decline. It reads accept and
	// Content from command hooks only.
	Action  string
	Content json.RawMessage // an object of the requested schema
	HookCommon
}

// WatchPathsOutput asks for more files to be watched.
type WatchPathsOutput struct {
	WatchPaths []string // absolute; they replace those of the hook before
	HookCommon
}

// WorktreeCreateOutput says where the worktree is.
type WorktreeCreateOutput struct {
	WorktreePath string // absolute
	HookCommon
}

// MessageDisplayOutput replaces the text that is shown.
type MessageDisplayOutput struct {
	DisplayContent string // "": the text as it is
	HookCommon
}

func (o HookOutput) wire(protocol.HookEvent) protocol.HookJSONOutput { return o.json(nil) }

func (o BlockOutput) wire(protocol.HookEvent) protocol.HookJSONOutput {
	return o.decided(o.Decision, o.Reason, nil)
}

func (o PreToolUseOutput) wire(protocol.HookEvent) protocol.HookJSONOutput {
	s := &protocol.PreToolUseOutput{
		PermissionDecision: o.PermissionDecision, PermissionDecisionReason: o.PermissionDecisionReason,
		UpdatedInput: o.UpdatedInput, AdditionalContext: o.AdditionalContext,
	}
	if s.PermissionDecision == "" && s.PermissionDecisionReason == "" && s.UpdatedInput == nil && s.AdditionalContext == "" {
		return o.json(nil)
	}
	return o.json(s)
}

func (o PostToolUseOutput) wire(protocol.HookEvent) protocol.HookJSONOutput {
	s := &protocol.PostToolUseOutput{
		AdditionalContext: o.AdditionalContext, ClassifierContext: o.ClassifierContext,
		UpdatedToolOutput: o.UpdatedToolOutput, UpdatedMCPToolOutput: o.UpdatedMCPToolOutput,
	}
	if s.AdditionalContext == "" && s.ClassifierContext == "" && s.UpdatedToolOutput == nil && s.UpdatedMCPToolOutput == nil {
		return o.decided(o.Decision, o.Reason, nil)
	}
	return o.decided(o.Decision, o.Reason, s)
}

func (o ContextOutput) wire(event protocol.HookEvent) protocol.HookJSONOutput {
	return o.json(told(event, o.AdditionalContext))
}

func (o FeedbackOutput) wire(event protocol.HookEvent) protocol.HookJSONOutput {
	return o.decided(o.Decision, o.Reason, told(event, o.AdditionalContext))
}

// told is the part of an output that tells the model something.
func told(event protocol.HookEvent, text string) protocol.HookSpecificOutput {
	if text == "" {
		return nil
	}
	return &protocol.ContextOutput{Name: event, AdditionalContext: text}
}

func (o UserPromptSubmitOutput) wire(protocol.HookEvent) protocol.HookJSONOutput {
	s := protocol.UserPromptSubmitOutput{
		AdditionalContext: o.AdditionalContext, SessionTitle: o.SessionTitle, SuppressOriginalPrompt: o.SuppressOriginalPrompt,
	}
	if s == (protocol.UserPromptSubmitOutput{}) {
		return o.decided(o.Decision, o.Reason, nil)
	}
	return o.decided(o.Decision, o.Reason, &s)
}

func (o UserPromptExpansionOutput) wire(protocol.HookEvent) protocol.HookJSONOutput {
	s := protocol.UserPromptExpansionOutput{AdditionalContext: o.AdditionalContext, SuppressOriginalPrompt: o.SuppressOriginalPrompt}
	if s == (protocol.UserPromptExpansionOutput{}) {
		return o.decided(o.Decision, o.Reason, nil)
	}
	return o.decided(o.Decision, o.Reason, &s)
}

func (o SessionStartOutput) wire(protocol.HookEvent) protocol.HookJSONOutput {
	s := &protocol.SessionStartOutput{
		AdditionalContext: o.AdditionalContext, InitialUserMessage: o.InitialUserMessage,
		SessionTitle: o.SessionTitle, WatchPaths: o.WatchPaths, ReloadSkills: o.ReloadSkills,
	}
	if s.AdditionalContext == "" && s.InitialUserMessage == "" && s.SessionTitle == "" && s.WatchPaths == nil && !s.ReloadSkills {
		return o.json(nil)
	}
	return o.json(s)
}

func (o PreModelSwitchOutput) wire(protocol.HookEvent) protocol.HookJSONOutput {
	s := protocol.PreModelSwitchOutput{PermissionDecision: o.PermissionDecision, PermissionDecisionReason: o.PermissionDecisionReason}
	if s == (protocol.PreModelSwitchOutput{}) {
		return o.json(nil)
	}
	return o.json(&s)
}

func (o PermissionRequestOutput) wire(protocol.HookEvent) protocol.HookJSONOutput {
	if o.Decision == nil {
		return o.json(nil)
	}
	return o.json(&protocol.PermissionRequestOutput{Decision: *o.Decision})
}

func (o PermissionDeniedOutput) wire(protocol.HookEvent) protocol.HookJSONOutput {
	if !o.Retry {
		return o.json(nil)
	}
	return o.json(&protocol.PermissionDeniedOutput{Retry: true})
}

func (o ElicitationOutput) wire(event protocol.HookEvent) protocol.HookJSONOutput {
	if o.Action == "" && o.Content == nil {
		return o.json(nil)
	}
	decision := ""
	if o.Action == protocol.ElicitDecline || o.Action == protocol.ElicitCancel {
		decision = DecisionBlock // the key that the agent reads from callbacks
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
	if o.WorktreePath == "" {
		return o.json(nil)
	}
	return o.json(&protocol.WorktreeCreateOutput{WorktreePath: o.WorktreePath})
}

func (o MessageDisplayOutput) wire(protocol.HookEvent) protocol.HookJSONOutput {
	if o.DisplayContent == "" {
		return o.json(nil)
	}
	return o.json(&protocol.MessageDisplayOutput{DisplayContent: o.DisplayContent})
}
