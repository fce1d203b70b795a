package dialect

import (
	"encoding/json"
	"time"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

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
