package sdk

import (
	"encoding/json"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/runtime"
)

// Types of the fields of [Options].
type (
	// Opt is a value that may be absent, which is not the same as zero. The
	// zero Opt is absent; [Some] makes a given one.
	Opt[T any] = dialect.Opt[T]
	// Set is a choice among what the agent has: the zero Set leaves it to the
	// agent, [None], [All] and [Only] do not.
	Set = dialect.Set

	AgentDefinition = dialect.AgentDefinition
	AgentMCPServer  = dialect.AgentMCPServer
	// MCPServerConfig is an MCP server outside of this process.
	MCPServerConfig       = dialect.MCPServer
	MCPToolPolicy         = dialect.MCPTool
	Auth                  = dialect.Auth
	Delivery              = dialect.Delivery
	Evolution             = dialect.Evolution
	Memory                = dialect.Memory
	OutputFormat          = dialect.OutputFormat
	Plugin                = dialect.Plugin
	Sandbox               = dialect.Sandbox
	SandboxFilesystem     = dialect.SandboxFilesystem
	SandboxNetwork        = dialect.SandboxNetwork
	SecurityScan          = dialect.SecurityScan
	SystemPrompt          = dialect.SystemPrompt
	Thinking              = dialect.Thinking
	ToolConfig            = dialect.ToolConfig
	AskUserQuestionConfig = dialect.AskUserQuestionConfig

	Limits      = runtime.Limits
	Graces      = runtime.Graces
	Spawner     = runtime.Spawner
	EventRecord = runtime.EventRecord
	// Warning is a legal and probably unintended thing in the options.
	Warning = dialect.Warning
)

// Values of Thinking.Type, Delivery, and MCPToolPolicy.PermissionPolicy, and
// the block that divides a system prompt into what is cached and what is not.
const (
	ThinkingAdaptive = dialect.ThinkingAdaptive
	ThinkingEnabled  = dialect.ThinkingEnabled
	ThinkingDisabled = dialect.ThinkingDisabled

	DeliverByLaunch     = dialect.DeliverByLaunch
	DeliverInInitialize = dialect.DeliverInInitialize

	AlwaysAllow = dialect.AlwaysAllow
	AlwaysAsk   = dialect.AlwaysAsk
	AlwaysDeny  = dialect.AlwaysDeny

	DynamicBoundary = dialect.DynamicBoundary
)

// Some is a given value, be it zero or not.
func Some[T any](v T) Opt[T] { return dialect.Some(v) }

// None is the empty set, said explicitly.
func None() Set { return dialect.None() }

// All is the set of everything the agent has.
func All() Set { return dialect.All() }

// Only is the set of the given names. Only() is None().
func Only(names ...string) Set { return dialect.Only(names...) }

// PromptText is a system prompt that replaces the agent's own.
func PromptText(blocks ...string) SystemPrompt { return dialect.PromptText(blocks...) }

// PresetPrompt is the agent's own system prompt, with text added unless empty.
func PresetPrompt(text string) SystemPrompt { return dialect.PresetPrompt(text) }

// JSONSchema asks for an answer that satisfies a JSON Schema object. See also
// [RunAs].
func JSONSchema(schema json.RawMessage) *OutputFormat { return dialect.JSONSchema(schema) }

// AccessToken logs in with a personal access token. Qoder.
func AccessToken(token string) *Auth { return dialect.AccessToken(token) }

// AccessTokenFromEnv logs in with the token in an environment variable; "" is
// QODER_PERSONAL_ACCESS_TOKEN. Qoder.
func AccessTokenFromEnv(name string) *Auth { return dialect.AccessTokenFromEnv(name) }

// QoderCLIAuth uses the login that qodercli has. Qoder.
func QoderCLIAuth() *Auth { return dialect.QoderCLIAuth() }

// ServiceAccountKey logs in with a service account's key. Qoder.
func ServiceAccountKey(key string) *Auth { return dialect.ServiceAccountKey(key) }
