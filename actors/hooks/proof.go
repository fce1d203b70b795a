package hooks

import (
	"slices"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Proves reports whether the agent must call UserPromptSubmit before it begins to answer
// a prompt. That is so if a hook is a gate: an agent whose hooks are turned off calls no
// gate and does not report it, but the missing UserPromptSubmit reveals it. If the session
// has no hook for that event, it registers one that guards nothing.
func Proves(d dialect.Dialect, all []session.Hook) bool {
	return d.Traits().PromptHookComesFirst && slices.ContainsFunc(all, func(h session.Hook) bool { return isGate(d, h) })
}

// ownProof reports whether the session registers such a hook.
func ownProof(d dialect.Dialect, all []session.Hook) bool {
	return Proves(d, all) && !asksOfPrompts(all)
}

// asksOfPrompts reports whether one of the hooks is called before each prompt.
// Agents compare no matcher with prompts (observed on Claude Code 2.1.329).
func asksOfPrompts(all []session.Hook) bool {
	return slices.ContainsFunc(all, func(h session.Hook) bool { return h.Event == protocol.HookUserPromptSubmit })
}

// isGate reports whether the hook denies when it fails.
func isGate(d dialect.Dialect, h session.Hook) bool {
	_, open := d.HookFailure(h.Event, "")
	return open == "" && h.OnFailure != session.ContinueOnFailure
}
