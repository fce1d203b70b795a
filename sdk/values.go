package sdk

import (
	"encoding/json"

	"github.com/agent-troupe/troupe/actors/transport"
	"github.com/agent-troupe/troupe/session"
)

// Types of the fields of [Options].
type (
	// Opt is a value that may be absent, which is not the same as zero. The
	// zero Opt is absent; [Some] makes a given one.
	Opt[T any] = session.Opt[T]
	// Set is a choice among what the agent has: the zero Set leaves it to the
	// agent, [None], [All] and [Only] do not.
	Set = session.Set

	// AgentDefinition is a subagent.
	AgentDefinition = session.AgentDefinition
	// AgentMCPServer is a server of an agent.
	AgentMCPServer = session.AgentMCPServer
	// MCPServerConfig is an MCP server outside of this process.
	MCPServerConfig = session.MCPServerConfig
	// SDKMCPServerConfig is what the agent is told of an MCP server in this process.
	SDKMCPServerConfig = session.SDKMCPServerConfig
	// MCPToolPolicy is the policy for one tool of an MCP server.
	MCPToolPolicy = session.MCPToolPolicy
	// Auth is how qodercli logs in.
	Auth = session.Auth
	// Delivery says how a list reaches the agent.
	Delivery = session.Delivery
	// Evolution turns on Qoder's evolution of skills.
	Evolution = session.Evolution
	// SkillEvolution is how skills evolve.
	SkillEvolution = session.SkillEvolution
	// SkillGeneration is when skills are reviewed.
	SkillGeneration = session.SkillGeneration
	// Memory turns on Qoder's memory.
	Memory = session.Memory
	// MemoryGeneration is when memories are made.
	MemoryGeneration = session.MemoryGeneration
	// MemoryConsumption is what the model is given of the memories.
	MemoryConsumption = session.MemoryConsumption
	// MemoryFile is a file of memories.
	MemoryFile = session.MemoryFile
	// MemoryRoot is a directory of memories.
	MemoryRoot = session.MemoryRoot
	// TurnComplete is work at the end of a turn.
	TurnComplete = session.TurnComplete
	// OutputFormat asks the model for an answer of a given shape.
	OutputFormat = session.OutputFormat
	// Plugin is a directory with skills, agents, hooks and MCP servers.
	Plugin = session.Plugin
	// Sandbox confines the shell commands of a session.
	Sandbox = session.Sandbox
	// SandboxCredentials hides credentials from sandboxed commands.
	SandboxCredentials = session.SandboxCredentials
	// SandboxCredential is a file or a variable with a credential in it.
	SandboxCredential = session.SandboxCredential
	// SandboxRipgrep is the ripgrep that the sandbox uses.
	SandboxRipgrep = session.SandboxRipgrep
	// SandboxTLS is the certificate authority that ends TLS in the sandbox's proxy.
	SandboxTLS = session.SandboxTLS
	// SandboxFilesystem limits what sandboxed commands may read and write.
	SandboxFilesystem = session.SandboxFilesystem
	// SandboxNetwork limits what sandboxed commands may reach.
	SandboxNetwork = session.SandboxNetwork
	// SecurityScan chooses the scans of generated code.
	SecurityScan = session.SecurityScan
	// SystemPrompt replaces the agent's system prompt (Blocks, File), or keeps and
	// extends it (Preset).
	SystemPrompt = session.SystemPrompt
	// Thinking sets the model's extended thinking.
	Thinking = session.Thinking
	// CloudAgent runs the session in Qoder's cloud. Not in this release.
	CloudAgent = session.CloudAgent
	// CloudAgentReference is an agent in the cloud.
	CloudAgentReference = session.CloudAgentReference
	// CloudAgentCreate is an agent to be made in the cloud.
	CloudAgentCreate = session.CloudAgentCreate
	// CloudToolset is a set of tools of an agent in the cloud.
	CloudToolset = session.CloudToolset
	// CloudMCPServer is an MCP server of an agent in the cloud.
	CloudMCPServer = session.CloudMCPServer
	// CloudSkill is a skill of an agent in the cloud.
	CloudSkill = session.CloudSkill
	// CloudSession is a session in the cloud.
	CloudSession = session.CloudSession
	// CloudSessionCreate is a session to be made in the cloud.
	CloudSessionCreate = session.CloudSessionCreate
	// CloudResource is a file in a session of the cloud.
	CloudResource = session.CloudResource
	// CloudStream tunes how the events of a session in the cloud come.
	CloudStream = session.CloudStream

	// ToolConfig tunes built-in tools.
	ToolConfig = session.ToolConfig
	// AskUserQuestionConfig tunes the AskUserQuestion tool.
	AskUserQuestionConfig = session.AskUserQuestionConfig

	// Limits bounds what a session holds and how long it waits. It is
	// [session.Limits].
	Limits = session.Limits
	// Spawner starts agents somewhere else than on this machine.
	Spawner = transport.Spawner
	// EventRecord is an event of a session, for [Options].OnEvent. The events
	// themselves are in package session, such as [session.StateChanged] and
	// [session.CallbackFailed]. It is [session.EventRecord].
	EventRecord = session.EventRecord
	// Warning is a legal and probably unintended thing in the options. It is
	// [session.Warning].
	Warning = session.Warning
)

// Values of Thinking.Type, Delivery, and MCPToolPolicy.PermissionPolicy, and
// the block that divides a system prompt into what is cached and what is not.
const (
	ThinkingAdaptive = session.ThinkingAdaptive
	ThinkingEnabled  = session.ThinkingEnabled
	ThinkingDisabled = session.ThinkingDisabled

	DeliverByLaunch     = session.DeliverByLaunch
	DeliverInArgv       = session.DeliverInArgv
	DeliverInInitialize = session.DeliverInInitialize

	AlwaysAllow = session.AlwaysAllow
	AlwaysAsk   = session.AlwaysAsk
	AlwaysDeny  = session.AlwaysDeny

	DynamicBoundary = session.DynamicBoundary
)

// Some is a given value, be it zero or not.
func Some[T any](v T) Opt[T] { return session.Some(v) }

// None is the empty set, said explicitly.
func None() Set { return session.None() }

// All is the set of everything the agent has.
func All() Set { return session.All() }

// Only is the set of the given names. Only() is None().
func Only(names ...string) Set { return session.Only(names...) }

// PromptText is a system prompt that replaces the agent's own.
func PromptText(blocks ...string) SystemPrompt { return session.PromptText(blocks...) }

// PresetPrompt is the agent's own system prompt, with text added unless empty.
func PresetPrompt(text string) SystemPrompt { return session.PresetPrompt(text) }

// PromptFile is a system prompt that is read from a file, relative to Cwd, when
// the session is made.
func PromptFile(path string) SystemPrompt { return SystemPrompt{File: path} }

// JSONSchema asks for an answer that satisfies a JSON Schema object. See also
// [RunAs].
func JSONSchema(schema json.RawMessage) *OutputFormat { return session.JSONSchema(schema) }

// AccessToken logs in with a personal access token. Qoder.
func AccessToken(token string) *Auth { return session.AccessToken(token) }

// AccessTokenFromEnv logs in with the token in an environment variable; "" is
// QODER_PERSONAL_ACCESS_TOKEN. Qoder.
func AccessTokenFromEnv(name string) *Auth { return session.AccessTokenFromEnv(name) }

// QoderCLIAuth uses the login that qodercli has. Qoder.
func QoderCLIAuth() *Auth { return session.QoderCLIAuth() }

// ServiceAccountKey logs in with a service account's key. Qoder.
func ServiceAccountKey(key string) *Auth { return session.ServiceAccountKey(key) }

// ServiceAccountTokens logs in with a service account's tokens, which
// Options.FetchServiceAccountToken gets. Qoder.
func ServiceAccountTokens() *Auth { return session.ServiceAccountTokens() }

// JobTokens logs in with job tokens, which Options.FetchJobToken gets. Qoder.
func JobTokens() *Auth { return session.JobTokens() }
