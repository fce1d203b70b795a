package session

import (
	"fmt"
	"log/slog"

	"github.com/agent-troupe/troupe/base/shown"
)

// String returns which options are set, without secrets. It has the values of numbers
// and booleans, and of Cwd, Model, PermissionMode and a few more; all other values are
// hidden. Logs of package log/slog have the same text. MarshalJSON has all values.
func (o Options) String() string { return shown.Struct(o) }

// Format writes String for every verb of package fmt.
func (o Options) Format(f fmt.State, verb rune) { shown.Print(f, verb, o.String()) }

// LogValue is String, for package log/slog. For a nil *Options that package logs an
// error text, as for every nil pointer whose type has a LogValue method.
func (o Options) LogValue() slog.Value { return slog.StringValue(o.String()) }

// String returns which fields are set, without secrets.
func (s MCPServerConfig) String() string { return shown.Struct(s) }

// Format writes String for every verb.
func (s MCPServerConfig) Format(f fmt.State, verb rune) { shown.Print(f, verb, s.String()) }

// LogValue is String, for package log/slog.
func (s MCPServerConfig) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Format writes String for every verb, also for an Auth that is not a pointer.
func (a Auth) Format(f fmt.State, verb rune) { shown.Print(f, verb, "session.Auth("+a.String()+")") }

// LogValue is String, for package log/slog.
func (a Auth) LogValue() slog.Value { return slog.StringValue(a.String()) }

// Format writes which fields are set, for every verb, without texts, because the
// servers may have secrets.
func (a AgentDefinition) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(a)) }

// LogValue returns the text that Format writes, for package log/slog.
func (a AgentDefinition) LogValue() slog.Value { return slog.StringValue(shown.Struct(a)) }

// Format writes the server's name, or that a configuration is set, for every verb.
func (s AgentMCPServer) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(s)) }

// LogValue returns the text that Format writes, for package log/slog.
func (s AgentMCPServer) LogValue() slog.Value { return slog.StringValue(shown.Struct(s)) }

// Format writes which fields are set, without secrets, for every verb.
func (c Command) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(c)) }

// LogValue returns the text that Format writes, for package log/slog.
func (c Command) LogValue() slog.Value { return slog.StringValue(shown.Struct(c)) }

// Format writes the file's name without its content, for every verb.
func (f File) Format(s fmt.State, verb rune) { shown.Print(s, verb, shown.Struct(f)) }

// LogValue returns the text that Format writes, for package log/slog.
func (f File) LogValue() slog.Value { return slog.StringValue(shown.Struct(f)) }
