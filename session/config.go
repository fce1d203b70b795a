package session

import (
	"fmt"
	"strings"
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
