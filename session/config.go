package session

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/policy"
)

// ConfigError is an option that cannot work: the backend does not have it, its value
// is invalid, or it contradicts another option. All errors of a configuration are
// returned together, joined, before any process starts; see [ConfigErrors].
type ConfigError struct {
	Option  string // Go field name, with a path if nested: `MCPServers["db"].Command`
	Backend string // "claude", "qoder"; empty if the error applies to every backend
	Problem string // what is wrong
	Fix     string // what to do; may be empty
}

func (e *ConfigError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "option %s", e.Option)
	if e.Backend != "" {
		fmt.Fprintf(&b, " (%s)", e.Backend)
	}
	fmt.Fprintf(&b, ": %s", e.Problem)
	if e.Fix != "" {
		fmt.Fprintf(&b, "; %s", e.Fix)
	}
	return b.String()
}

// ConfigErrors returns every *[ConfigError] in the tree of err, in the order in
// which they were found.
func ConfigErrors(err error) []*ConfigError {
	switch e := err.(type) { //nolint:errorlint // this walks the tree that errors.As stops in
	case *ConfigError:
		return []*ConfigError{e}
	case interface{ Unwrap() error }:
		return ConfigErrors(e.Unwrap())
	case interface{ Unwrap() []error }:
		var all []*ConfigError
		for _, sub := range e.Unwrap() {
			all = append(all, ConfigErrors(sub)...)
		}
		return all
	}
	return nil
}

// Warning is an option that is valid, but perhaps does not do what you intend: a rule
// prevents its callback from being called, or it has no effect on this backend. A
// session emits each as a [WarningIssued] event.
type Warning struct {
	Option  string // Go field name
	Rule    string // the rule or option that causes the warning, e.g. `Bash(git:*)`; may be empty
	Problem string // what will happen
	Fix     string // what to do instead; may be empty
}

func (w Warning) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "option %s", w.Option)
	if w.Rule != "" {
		fmt.Fprintf(&b, " (rule %s)", w.Rule)
	}
	fmt.Fprintf(&b, ": %s", w.Problem)
	if w.Fix != "" {
		fmt.Fprintf(&b, "; %s", w.Fix)
	}
	return b.String()
}

// UnsupportedCapabilityError is a request that this agent, or this release of it,
// does not support. The request was not sent.
type UnsupportedCapabilityError struct {
	Backend    string // "claude", "qoder"
	Capability string // the capability that the agent did not announce, e.g. "goal_v1"; empty if no release supports the request
	Request    string // subtype of the request
}

func (e *UnsupportedCapabilityError) Error() string {
	if e.Capability == "" {
		return fmt.Sprintf("%s does not serve %s requests", e.Backend, e.Request)
	}
	return fmt.Sprintf("%s did not announce capability %s, which %s needs; use a newer agent", e.Backend, e.Capability, e.Request)
}

// PersonLimit is how long a callback may take that answers in the place of a person, and
// the option that says so; 0: there is no limit.
func (o *Options) PersonLimit() (limit time.Duration, setBy string) {
	if o.PermissionTimeout == 0 && o.Unattended {
		return time.Minute, "Unattended"
	}
	return o.PermissionTimeout, "PermissionTimeout"
}

// HasPolicy reports whether the policy decides about every call, so that no rule or
// mode of the agent allows a call that the policy does not.
func (o *Options) HasPolicy() bool { return o.Policy != nil && o.Policy.Default != policy.Agent }

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
