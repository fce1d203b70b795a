package sdk

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// The types of the usual fields of [Options]. Package session has the others, such
// as [session.Plugin] and [session.Memory].
type (
	// Opt is a value that may be absent, which is not the same as zero. The zero Opt
	// is absent; [Some] makes one with a value. It is [session.Opt].
	Opt[T any] = session.Opt[T]

	// MCPServerConfig is an external MCP server: a process on stdio, or a URL. It is
	// [session.MCPServerConfig].
	MCPServerConfig = session.MCPServerConfig

	// EventRecord is an event with its session and its time, for [Options].OnEvent.
	// The event types are in package session, such as [session.StateChanged] and
	// [session.CallbackFailed]. It is [session.EventRecord].
	EventRecord = session.EventRecord
)

// Some returns v as a given value, even if v is zero.
func Some[T any](v T) Opt[T] { return session.Some(v) }

// None returns the empty set, sent explicitly.
func None() session.Set { return session.None() }

// All returns the set of everything that the agent has.
func All() session.Set { return session.All() }

// Only returns the set of the given names. Only() is the same as None().
func Only(names ...string) session.Set { return session.Only(names...) }

// PromptText returns a system prompt that replaces the agent's own. PromptText("") is
// an empty prompt.
func PromptText(blocks ...string) session.SystemPrompt {
	return session.SystemPrompt{Blocks: slices.Clone(blocks)}
}

// PresetPrompt returns the agent's own system prompt with text appended to it. If text
// is empty, nothing is appended.
func PresetPrompt(text string) session.SystemPrompt {
	return session.SystemPrompt{Preset: true, Append: text}
}

// PromptFile returns a system prompt that is read from a file when the session is
// made. path is relative to Options.Cwd.
func PromptFile(path string) session.SystemPrompt { return session.SystemPrompt{File: path} }

// JSONSchema returns the output format of answers that satisfy schema, a JSON Schema
// object. [RunAs] derives the schema from a Go type.
func JSONSchema(schema json.RawMessage) *session.OutputFormat {
	return &session.OutputFormat{Type: "json_schema", Schema: schema}
}

// AccessToken logs in with a personal access token. Qoder.
func AccessToken(token string) *session.Auth {
	return &session.Auth{Type: session.AuthAccessToken, AccessToken: token}
}

// AccessTokenFromEnv logs in with the token in the environment variable name; ""
// means QODER_PERSONAL_ACCESS_TOKEN. Qoder.
func AccessTokenFromEnv(name string) *session.Auth {
	return &session.Auth{Type: session.AuthAccessToken, EnvVar: cmp.Or(name, session.DefaultTokenEnv)}
}

// QoderCLIAuth uses the login that qodercli already has. Qoder.
func QoderCLIAuth() *session.Auth { return &session.Auth{Type: session.AuthQoderCLI} }

// ServiceAccountKey logs in with a service account's key. Qoder.
func ServiceAccountKey(key string) *session.Auth {
	return &session.Auth{Type: session.AuthServiceAccount, ServiceAccountKey: key}
}

// ServiceAccountTokens logs in with a service account's tokens.
// Options.FetchServiceAccountToken must provide them. Qoder.
func ServiceAccountTokens() *session.Auth { return &session.Auth{Type: session.AuthServiceAccount} }

// JobTokens logs in with job tokens. Options.FetchJobToken must provide them. Qoder.
func JobTokens() *session.Auth { return &session.Auth{Type: session.AuthJobToken} }

// KeepModel lets the agent use the model that it has chosen.
func KeepModel() protocol.ModelPolicyReply { return protocol.ModelPolicyReply{} }

// UseModel chooses the model called name. With an empty name the agent fails the call.
func UseModel(name string) protocol.ModelPolicyReply { return protocol.ModelPolicyReply{Model: &name} }

// UseOwnModel routes the call to your own model (BYOK: bring your own key). The
// credentials are sent to the agent and nowhere else.
func UseOwnModel(name string, credentials protocol.CustomModel) protocol.ModelPolicyReply {
	return protocol.ModelPolicyReply{Model: &name, CustomModel: &credentials}
}

// WithParameters adds parameters for the model, such as temperature. parameters must
// marshal to a JSON object.
func WithParameters(r protocol.ModelPolicyReply, parameters any) (protocol.ModelPolicyReply, error) {
	raw, err := json.Marshal(parameters)
	if err != nil {
		return protocol.ModelPolicyReply{}, err
	}
	if raw[0] != '{' {
		return protocol.ModelPolicyReply{}, fmt.Errorf("sdk: the parameters for the model have type %T, which does not encode as a JSON object; pass a struct or a map", parameters)
	}
	r.Parameters = raw
	return r, nil
}

// modelIsResolved is the error of choosing a model that ResolveModel chooses.
func (c *Client) modelIsResolved() error {
	if !c.picksModel {
		return nil
	}
	return &ConfigError{
		Option: "ResolveModel", Problem: "chooses the model of every call, and SetModel would change nothing",
		Fix: "let ResolveModel answer with the model",
	}
}
