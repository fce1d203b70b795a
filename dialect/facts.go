package dialect

import (
	"encoding/json"
	"time"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Input is what a dialect reads: the options of a session, and the facts that come
// with them. A dialect does not change it.
type Input struct {
	session.Options // the session's own copy
	Facts
}

// Facts are what a dialect needs to know and no user says: what the runtime makes of
// the callbacks and servers in the options, and what it finds around the session.
type Facts struct {
	// ParentEnv is the environment that Options.Env is merged over, as of os.Environ; nil: treated as empty.
	ParentEnv []string
	// SettingsContent is the content of Options.SettingsPath as read by the caller. Needed only when other options have
	// to be merged into it; otherwise the path is passed on and this is not looked at.
	SettingsContent []byte
	// Registrations are the hook callbacks in order: initialize.
	Registrations []HookRegistration
	// Servers are the servers of Options.SDKMCPServers: initialize. Names are unique, also among MCPServers.
	Servers []SDKMCPServer
	// HasSessionStore: the host mirrors the transcript: --session-mirror. Not with PersistSession false.
	HasSessionStore bool
}

// SDKMCPServer is an MCP server that runs in the host and is reached by mcp_message requests.
type SDKMCPServer struct {
	// Name is the server's key; tools are called mcp__NAME__TOOL.
	Name string
	// InitializeResult and ToolsListResult are the server's own handshake results. With them Claude Code skips
	// the handshake (observed on 2.1.329); nil: it asks.
	InitializeResult, ToolsListResult json.RawMessage
	// Timeout limits a tool call; 0: the agent's default. The wire carries milliseconds. Claude.
	Timeout time.Duration
	// Tools are policies for single tools.
	Tools []session.MCPToolPolicy
}

// HookRegistration is one matcher of a hook event and the callbacks behind it.
type HookRegistration struct {
	Event protocol.HookEvent
	// Matcher is a pattern for the tool's name (or what the event matches on); empty: everything.
	Matcher string
	// CallbackIDs come back in hook_callback requests; at least one, unique in the session.
	CallbackIDs []string
	// Timeout is the agent's; 0: its default (60 s). The wire carries seconds.
	Timeout time.Duration
	// OnFailure says what an error answer, or one that does not validate, means. Empty: session.BlockOnFailure
	// for gates, the agent's default (continue) for the rest. Claude.
	OnFailure session.FailureAction
}

// Identifiers under which initialize names the callbacks that are no hooks
// (observed on the Qoder SDK 1.0.39).
const (
	MemoryCallbackID    = "memory_should_generate_0"
	EvolutionCallbackID = "skill_evolution_should_review_0"
)
