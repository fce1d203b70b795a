package protocol

import (
	"fmt"
	"log/slog"

	"github.com/agent-troupe/troupe/base/shown"
)

// Servers, settings and environments hold secrets in fields of many names. Types with
// such fields are printed and logged as the names of the fields that are set.

// Format writes which fields are set, without secrets, for every verb.
func (c MCPServerConfig) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(c)) }

// LogValue returns the text that Format writes, for package log/slog.
func (c MCPServerConfig) LogValue() slog.Value { return slog.StringValue(shown.Struct(c)) }

// Format writes which fields are set, without secrets, for every verb.
func (r ClaimSessionRequest) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(r)) }

// LogValue returns the text that Format writes, for package log/slog.
func (r ClaimSessionRequest) LogValue() slog.Value { return slog.StringValue(shown.Struct(r)) }

// Format writes which fields are set, without secrets, for every verb.
func (r ApplyFlagSettingsRequest) Format(f fmt.State, verb rune) {
	shown.Print(f, verb, shown.Struct(r))
}

// LogValue returns the text that Format writes, for package log/slog.
func (r ApplyFlagSettingsRequest) LogValue() slog.Value { return slog.StringValue(shown.Struct(r)) }

// Format writes which fields are set, without secrets, for every verb.
func (r UpdateSettingsRequest) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(r)) }

// LogValue returns the text that Format writes, for package log/slog.
func (r UpdateSettingsRequest) LogValue() slog.Value { return slog.StringValue(shown.Struct(r)) }

// Format writes which fields are set, without secrets, for every verb.
func (a AgentDefinition) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(a)) }

// LogValue returns the text that Format writes, for package log/slog.
func (a AgentDefinition) LogValue() slog.Value { return slog.StringValue(shown.Struct(a)) }

// Format writes which fields are set, without secrets, for every verb.
func (s AgentMCPServer) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(s)) }

// LogValue returns the text that Format writes, for package log/slog.
func (s AgentMCPServer) LogValue() slog.Value { return slog.StringValue(shown.Struct(s)) }

// Format writes which fields are set, without secrets, for every verb.
func (r InitializeRequest) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(r)) }

// LogValue returns the text that Format writes, for package log/slog.
func (r InitializeRequest) LogValue() slog.Value { return slog.StringValue(shown.Struct(r)) }

// Format writes which fields are set, without secrets, for every verb.
func (s MCPServerStatus) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(s)) }

// LogValue returns the text that Format writes, for package log/slog.
func (s MCPServerStatus) LogValue() slog.Value { return slog.StringValue(shown.Struct(s)) }

// Format writes which fields are set, without secrets, for every verb.
func (r MCPSetServersRequest) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(r)) }

// LogValue returns the text that Format writes, for package log/slog.
func (r MCPSetServersRequest) LogValue() slog.Value { return slog.StringValue(shown.Struct(r)) }

// Format writes which fields are set, without secrets, for every verb.
func (r MCPStatusResponse) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(r)) }

// LogValue returns the text that Format writes, for package log/slog.
func (r MCPStatusResponse) LogValue() slog.Value { return slog.StringValue(shown.Struct(r)) }

// Format writes which fields are set, without secrets, for every verb.
func (r ReloadPluginsResponse) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(r)) }

// LogValue returns the text that Format writes, for package log/slog.
func (r ReloadPluginsResponse) LogValue() slog.Value { return slog.StringValue(shown.Struct(r)) }

// Format writes which fields are set, without secrets, for every verb.
func (m MCPStatusChangeMessage) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(m)) }

// LogValue returns the text that Format writes, for package log/slog.
func (m MCPStatusChangeMessage) LogValue() slog.Value { return slog.StringValue(shown.Struct(m)) }

// Format writes which fields are set, without secrets, for every verb.
func (r ModelPolicyReply) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(r)) }
