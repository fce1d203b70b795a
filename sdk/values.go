package sdk

import (
	"encoding/json"

	"github.com/agent-troupe/troupe/session"
)

// The types of the usual fields of [Options]. Package session has the others, such
// as [session.Plugin] and [session.Memory].
type (
	// Opt is a value that may be absent, which is not the same as zero. The zero Opt
	// is absent; [Some] makes one with a value. It is [session.Opt].
	Opt[T any] = session.Opt[T]
	// Set is a choice among the tools, skills or setting sources of the agent. With
	// the zero Set the agent chooses; [None], [All] and [Only] choose for it. It is
	// [session.Set].
	Set = session.Set

	// AgentDefinition describes a subagent. It is [session.AgentDefinition].
	AgentDefinition = session.AgentDefinition
	// MCPServerConfig is an external MCP server: a process on stdio, or a URL. It is
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

	// Limits bound what a session buffers and how long it waits. It is
	// [session.Limits].
	Limits = session.Limits
	// Spawner starts agents somewhere else, such as in a container. It is
	// [session.Spawner].
	Spawner = session.Spawner
	// EventRecord is an event with its session and its time, for [Options].OnEvent.
	// The event types are in package session, such as [session.StateChanged] and
	// [session.CallbackFailed]. It is [session.EventRecord].
	EventRecord = session.EventRecord
	// Warning is an option that is valid, but perhaps does not do what you intend. It
	// is [session.Warning].
	Warning = session.Warning
)

// Some returns v as a given value, even if v is zero.
func Some[T any](v T) Opt[T] { return session.Some(v) }

// None returns the empty set, sent explicitly.
func None() Set { return session.None() }

// All returns the set of everything that the agent has.
func All() Set { return session.All() }

// Only returns the set of the given names. Only() is the same as None().
func Only(names ...string) Set { return session.Only(names...) }

// PromptText returns a system prompt that replaces the agent's own. PromptText("") is
// an empty prompt.
func PromptText(blocks ...string) SystemPrompt { return session.PromptText(blocks...) }

// PresetPrompt returns the agent's own system prompt with text appended to it. If text
// is empty, nothing is appended.
func PresetPrompt(text string) SystemPrompt { return session.PresetPrompt(text) }

// PromptFile returns a system prompt that is read from a file when the session is
// made. path is relative to Options.Cwd.
func PromptFile(path string) SystemPrompt { return SystemPrompt{File: path} }

// JSONSchema returns the output format of answers that satisfy schema, a JSON Schema
// object. [RunAs] derives the schema from a Go type.
func JSONSchema(schema json.RawMessage) *OutputFormat { return session.JSONSchema(schema) }

// AccessToken logs in with a personal access token. Qoder.
func AccessToken(token string) *Auth { return session.AccessToken(token) }

// AccessTokenFromEnv logs in with the token in the environment variable name; ""
// means QODER_PERSONAL_ACCESS_TOKEN. Qoder.
func AccessTokenFromEnv(name string) *Auth { return session.AccessTokenFromEnv(name) }

// QoderCLIAuth uses the login that qodercli already has. Qoder.
func QoderCLIAuth() *Auth { return session.QoderCLIAuth() }

// ServiceAccountKey logs in with a service account's key. Qoder.
func ServiceAccountKey(key string) *Auth { return session.ServiceAccountKey(key) }

// ServiceAccountTokens logs in with a service account's tokens.
// Options.FetchServiceAccountToken must provide them. Qoder.
func ServiceAccountTokens() *Auth { return session.ServiceAccountTokens() }

// JobTokens logs in with job tokens. Options.FetchJobToken must provide them. Qoder.
func JobTokens() *Auth { return session.JobTokens() }
