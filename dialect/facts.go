package dialect

import (
	"encoding/json"
	"time"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Input is the input of a dialect: the options of a session, and facts about its
// surroundings. A dialect does not change it.
type Input struct {
	session.Options // the session's own copy
	Facts
}

// Facts are the inputs of a dialect that are not options: what the runtime derives from
// the callbacks and servers of the options, and the surroundings of the session.
type Facts struct {
	// ParentEnv is the environment to which Options.Env is added, in the form of os.Environ; nil: empty.
	ParentEnv []string
	// SettingsContent is the content of the file Options.SettingsPath. It is used only if other options have to be
	// merged into it; otherwise the path is passed on.
	SettingsContent []byte
	// LoadedSettings are the settings files and the project's files of MCP servers that the agent loads by itself, as
	// Options.SettingSources selects, as far as they exist and were read.
	LoadedSettings []SettingsFile
	// Registrations are the hook callbacks in order: initialize.
	Registrations []HookRegistration
	// Servers are the servers of Options.SDKMCPServers: initialize. Names are unique, also among MCPServers.
	Servers []SDKMCPServer
	// HasSessionStore says that the host mirrors the transcript: --session-mirror. It is an error with PersistSession
	// false.
	HasSessionStore bool
}

// SettingsFile is a file that the agent loads by itself.
type SettingsFile struct {
	Source  string // user, project or local
	Servers bool   // a file of MCP servers, not of settings
	Path    string
	Content []byte
}

// SDKMCPServer is an MCP server that runs in the host. The agent reaches it by mcp_message requests.
type SDKMCPServer struct {
	// Name is the server's key; its tools are named mcp__NAME__TOOL.
	Name string
	// InitializeResult and ToolsListResult are the server's results of the handshake. With them Claude Code skips the
	// handshake (observed on 2.1.329); nil: the agent makes the handshake.
	InitializeResult, ToolsListResult json.RawMessage
	// Timeout limits one tool call; 0: the agent's default. It is sent in milliseconds. Claude.
	Timeout time.Duration
	// Tools are policies for single tools.
	Tools []session.MCPToolPolicy
}

// HookRegistration registers callbacks for a hook event and a matcher.
type HookRegistration struct {
	Event protocol.HookEvent
	// Matcher is a pattern for the tool's name, or for the field that the event matches on; empty: everything.
	Matcher string
	// CallbackIDs are the ids in hook_callback requests; at least one, each unique in the session.
	CallbackIDs []string
	// Timeout is how long the agent waits; 0: its default (60 s). It is sent in seconds.
	Timeout time.Duration
	// OnFailure says what an error answer or an invalid answer means. Empty: session.BlockOnFailure for gates, the
	// agent's default (continue) for all other events. Claude.
	OnFailure session.FailureAction
}

// Identifiers in initialize of the callbacks that are not hooks (observed on the Qoder
// SDK 1.0.39).
const (
	MemoryCallbackID    = "memory_should_generate_0"
	EvolutionCallbackID = "skill_evolution_should_review_0"
)
