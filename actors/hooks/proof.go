package hooks

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Proven returns the hooks of a session with one more behind them where that is
// needed to see that the agent calls hooks at all. An agent with its hooks
// switched off calls no gate and says nothing of it, but it does not call
// UserPromptSubmit either, with which it otherwise begins to answer a prompt.
// A hook of the user's for that event is proof enough, and a session without
// gates needs none.
func Proven(d dialect.Dialect, all []Hook) []Hook {
	if !d.Traits().PromptHookComesFirst || !slices.ContainsFunc(all, func(h Hook) bool { return isGate(d, h) }) || asksOfPrompts(all) {
		return all
	}
	return append(slices.Clip(all), Hook{
		Event: protocol.HookUserPromptSubmit,
		Func:  func(context.Context, *session.HookCall) (json.RawMessage, error) { return json.RawMessage("{}"), nil },
		proof: true,
	})
}

// Proves reports whether the agent has to call a hook before it begins to answer
// a prompt.
func Proves(d dialect.Dialect, all []Hook) bool {
	return d.Traits().PromptHookComesFirst && asksOfPrompts(all) && slices.ContainsFunc(all, func(h Hook) bool { return isGate(d, h) })
}

// asksOfPrompts reports whether one of the hooks is called before each prompt.
// Agents compare no matcher with prompts (observed on Claude Code 2.1.329).
func asksOfPrompts(all []Hook) bool {
	return slices.ContainsFunc(all, func(h Hook) bool { return h.Event == protocol.HookUserPromptSubmit })
}

// isGate reports whether the hook denies when it fails.
func isGate(d dialect.Dialect, h Hook) bool {
	_, open := d.HookFailure(h.Event, "")
	return open == "" && h.OnFailure != session.ContinueOnFailure
}
