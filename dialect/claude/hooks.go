package claude

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/internal/build"
	"github.com/agent-troupe/troupe/protocol"
)

// checkHooks warns of handlers that Claude Code never calls. Setup, SessionEnd and the SessionStart of a startup run as
// command hooks of the settings alone (observed on 2.1.197 and 2.1.329). For CwdChanged and FileChanged it looks whether
// the settings have such hooks, and then calls the host's, too (observed on 2.1.329).
func checkHooks(o *dialect.Input, p *build.Problems) {
	for i, h := range o.Registrations {
		at := fmt.Sprintf("Hooks[%d]", i)
		switch {
		case h.Event == protocol.HookSetup || h.Event == protocol.HookSessionEnd:
			p.Warn(at, "", fmt.Sprintf("is for %s, for which Claude Code never calls the host", h.Event), "use a command hook in the settings")
		case h.Event == protocol.HookSessionStart && h.Matcher != "compact":
			p.Warn(at, "", "is for SessionStart, for which Claude Code calls the host only after a compaction",
				`match "compact", or act on the init message`)
		case h.Event == protocol.HookCwdChanged && !inSettings(o, protocol.HookCwdChanged, protocol.HookFileChanged):
			p.Warn(at, "", "is for CwdChanged, for which Claude Code calls the host only if its settings have a hook for it",
				`add one that does nothing, such as {"type":"command","command":"true"}`)
		case h.Event == protocol.HookFileChanged && !inSettings(o, protocol.HookFileChanged) && !hooked(o, protocol.HookSessionStart):
			p.Warn(at, "", "is for FileChanged, but nothing names a file to watch to Claude Code (settings files were not read)",
				"name it as the matcher of a FileChanged hook in the settings, or in the WatchPaths of a SessionStart hook")
		case h.Event != "" && !slices.Contains(protocol.HookEvents(), h.Event):
			p.Warn(at, "", fmt.Sprintf("is for %s, an event that Troupe does not know", h.Event), "check its spelling, and that the agent knows it")
		}
	}
}

// inSettings reports whether the settings have hooks for one of the events. Those in files are not known.
func inSettings(o *dialect.Input, events ...protocol.HookEvent) bool {
	var settings struct {
		Hooks map[protocol.HookEvent]json.RawMessage `json:"hooks"`
	}
	// Settings that are not an object are reported elsewhere.
	return json.Unmarshal(o.Settings, &settings) == nil &&
		slices.ContainsFunc(events, func(e protocol.HookEvent) bool { return settings.Hooks[e] != nil })
}

func hooked(o *dialect.Input, event protocol.HookEvent) bool {
	return slices.ContainsFunc(o.Registrations, func(h dialect.HookRegistration) bool { return h.Event == event })
}
