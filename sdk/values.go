package sdk

import (
	"encoding/json"

	"github.com/agent-troupe/troupe/session"
)

// The types of the usual fields of [Options]. Package session has the others, such
// as [session.Plugin] and [session.Memory].
type (
	// Opt is a value that may be absent, which is not the same as zero. The
	// zero Opt is absent; [Some] makes a given one. It is [session.Opt].
	Opt[T any] = session.Opt[T]
	// Set is a choice among what the agent has: the zero Set leaves it to the
	// agent, [None], [All] and [Only] do not. It is [session.Set].
	Set = session.Set

	// AgentDefinition is a subagent. It is [session.AgentDefinition].
	AgentDefinition = session.AgentDefinition
	// MCPServerConfig is an MCP server outside of this process. It is
	// [session.MCPServerConfig].
	MCPServerConfig = session.MCPServerConfig
	// Auth is how qodercli logs in. It is [session.Auth].
	Auth = session.Auth
	// OutputFormat asks the model for an answer of a given shape. It is
	// [session.OutputFormat].
	OutputFormat = session.OutputFormat
	// Sandbox confines the shell commands of a session. It is [session.Sandbox].
	Sandbox = session.Sandbox
	// SystemPrompt replaces the agent's system prompt (Blocks, File), or keeps and
	// extends it (Preset). It is [session.SystemPrompt].
	SystemPrompt = session.SystemPrompt
	// Thinking sets the model's extended thinking. It is [session.Thinking].
	Thinking = session.Thinking

	// Limits bounds what a session holds and how long it waits. It is
	// [session.Limits].
	Limits = session.Limits
	// Spawner starts agents somewhere else than on this machine. It is
	// [session.Spawner].
	Spawner = session.Spawner
	// EventRecord is an event of a session, for [Options].OnEvent. The events
	// themselves are in package session, such as [session.StateChanged] and
	// [session.CallbackFailed]. It is [session.EventRecord].
	EventRecord = session.EventRecord
	// Warning is a legal and probably unintended thing in the options. It is
	// [session.Warning].
	Warning = session.Warning
)

// Values of Thinking.Type. Package session has those of the other types, such as
// [session.DeliverInInitialize], [session.AlwaysAllow] and [session.DynamicBoundary].
const (
	ThinkingAdaptive = session.ThinkingAdaptive
	ThinkingEnabled  = session.ThinkingEnabled
	ThinkingDisabled = session.ThinkingDisabled
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
