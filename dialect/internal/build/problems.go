package build

import (
	"errors"
	"fmt"
	"slices"

	"github.com/agent-troupe/troupe/session"
)

// Problems collects what is wrong, or doubtful, with a configuration.
type Problems struct {
	Backend  string
	MCPName  func(string) string // how the agent spells names of MCP servers and tools; nil: protocol.MCPName
	Warnings []session.Warning
	errs     []*session.ConfigError
}

// Add records an error, once.
func (p *Problems) Add(option, problem, fix string) {
	e := session.ConfigError{Option: option, Backend: p.Backend, Problem: problem, Fix: fix}
	if slices.ContainsFunc(p.errs, func(have *session.ConfigError) bool { return *have == e }) {
		return
	}
	p.errs = append(p.errs, &e)
}

// Has reports whether an error about the option is recorded.
func (p *Problems) Has(option string) bool {
	return slices.ContainsFunc(p.errs, func(e *session.ConfigError) bool { return e.Option == option })
}

// Addf is Add with a formatted problem and no fix beyond it.
func (p *Problems) Addf(option, format string, args ...any) {
	p.Add(option, fmt.Sprintf(format, args...), "")
}

// AddIf records an error if bad.
func (p *Problems) AddIf(bad bool, option, problem, fix string) {
	if bad {
		p.Add(option, problem, fix)
	}
}

// Lacks records an error if an option that the backend does not have was given.
func (p *Problems) Lacks(option string, given bool, fix string) {
	p.AddIf(given, option, "not supported by this backend", fix)
}

// Warn records a warning.
func (p *Problems) Warn(option, rule, problem, fix string) {
	p.Warnings = append(p.Warnings, session.Warning{Option: option, Rule: rule, Problem: problem, Fix: fix})
}

// NoEffect warns if an option was given that the backend takes and ignores.
func (p *Problems) NoEffect(option string, given bool) {
	if given {
		p.Warn(option, "", "has no effect on "+p.Backend, "leave it out")
	}
}

// Err joins the errors, or nil.
func (p *Problems) Err() error {
	errs := make([]error, len(p.errs))
	for i, e := range p.errs {
		errs[i] = e
	}
	return errors.Join(errs...)
}
