package sdk

import (
	"fmt"
	"log/slog"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/session"
)

// Options are the options of a session: the agent, its permissions, the callbacks and
// the limits. The zero value is valid, except that Qoder requires Auth. It is
// [session.Options], which has the fields.
type Options = session.Options

// Policy are the rules of [Options].Policy, which decide about tool calls. Package
// policy documents the syntax; with it a program can also test rules and explain a
// decision.
//
// Troupe enforces the policy with a hook, for every call, in every permission mode and
// for subagents. A call that matches no rule goes to CanUseTool, and is denied without
// one; Default changes that. In permission mode dontAsk, a call that is not allowed is
// denied, and CanUseTool is not called.
//
// Troupe fills in empty fields: Cwd with Options.Cwd or the directory of this
// program, Root with Cwd, Home with the HOME of the agent. It adds
// Options.AdditionalDirectories to Directories. If the agent runs on another machine,
// set these fields yourself. Resolve follows the symbolic links of this machine; if
// Options.Spawner is set, links are not followed. It is [policy.Rules].
type Policy = policy.Rules

// Format writes which fields are set, without secrets, for every verb.
func (c Claim) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(c)) }

// LogValue returns the text that Format writes, for package log/slog.
func (c Claim) LogValue() slog.Value { return slog.StringValue(shown.Struct(c)) }

// Format writes which fields are set, for every verb, without the settings, which may
// have secrets.
func (s SettingsSource) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(s)) }

// LogValue returns the text that Format writes, for package log/slog.
func (s SettingsSource) LogValue() slog.Value { return slog.StringValue(shown.Struct(s)) }

// Format writes which fields are set, for every verb, without the settings, which may
// have secrets.
func (r ResolvedSettings) Format(f fmt.State, verb rune) { shown.Print(f, verb, shown.Struct(r)) }

// LogValue returns the text that Format writes, for package log/slog.
func (r ResolvedSettings) LogValue() slog.Value { return slog.StringValue(shown.Struct(r)) }
