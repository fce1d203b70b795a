package claude

import (
	"fmt"
	"slices"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/internal/build"
	"github.com/agent-troupe/troupe/protocol"
)

// checkHooks warns of handlers that Claude Code never calls. Setup, SessionEnd and the SessionStart of a startup run as
// command hooks of the settings alone (observed on 2.1.197 and 2.1.329).
func checkHooks(o *dialect.Options, p *build.Problems) {
	for i, h := range o.Hooks {
		at := fmt.Sprintf("Hooks[%d]", i)
		switch {
		case h.Event == protocol.HookSetup || h.Event == protocol.HookSessionEnd:
			p.Warn(at, "", fmt.Sprintf("is for %s, which Claude Code never calls a host back for", h.Event), "use a command hook in the settings")
		case h.Event == protocol.HookSessionStart && h.Matcher != "compact":
			p.Warn(at, "", "is for SessionStart, which Claude Code calls a host back for after a compaction only",
				`match "compact", or act on the init message`)
		case h.Event != "" && !slices.Contains(protocol.HookEvents(), h.Event):
			p.Warn(at, "", fmt.Sprintf("is for %s, an event that this library does not know", h.Event), "see that the agent does, and how it is spelled")
		}
	}
}
