package qoder

import (
	"fmt"
	"slices"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/internal/build"
	"github.com/agent-troupe/troupe/protocol"
)

// hookEvents are the events of the Qoder SDK 1.0.39.
func hookEvents() []protocol.HookEvent {
	return []protocol.HookEvent{
		protocol.HookPreToolUse, protocol.HookPostToolUse, protocol.HookPostToolUseFailure,
		protocol.HookUserPromptSubmit, protocol.HookSessionStart, protocol.HookSessionEnd, protocol.HookStop,
		protocol.HookSubagentStart, protocol.HookSubagentStop, protocol.HookPreCompact, protocol.HookPostCompact,
		protocol.HookCwdChanged, protocol.HookInstructionsLoaded, protocol.HookFileChanged,
		protocol.HookPermissionRequest, protocol.HookPermissionDenied,
		protocol.HookWorktreeCreate, protocol.HookWorktreeRemove,
	}
}

// checkHooks warns of handlers for events that qodercli does not have.
func checkHooks(o *dialect.Input, p *build.Problems) {
	for i, h := range o.Registrations {
		at := fmt.Sprintf("Hooks[%d]", i)
		p.Lacks(at+".OnFailure", h.OnFailure != "", "gates deny in any case")
		switch {
		case h.Event == "" || slices.Contains(hookEvents(), h.Event):
		case slices.Contains(protocol.HookEvents(), h.Event):
			p.Warn(at, "", fmt.Sprintf("is for %s, an event that qodercli does not have, so that the handler is never called", h.Event), "leave it out")
		default:
			p.Warn(at, "", fmt.Sprintf("is for %s, an event that Troupe does not know", h.Event), "check its spelling, and that the agent knows it")
		}
	}
}
