package callback

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/session"
)

// EnforcePolicy makes the policy of the options, if they have one, decide about every tool
// call. It wraps CanUseTool and the hooks, and appends one hook after the user's hooks, whose
// callback ids stay the same. o.Hooks is copied first. Warnings are about a policy
// that decides less than its rules suggest, or more than other options do. The error has a
// *[session.ConfigError] for each mistake; the options are then fit only to be checked for
// more mistakes. told, if it is set, learns what the policy says of each call.
func EnforcePolicy(o *session.Options, told Told) ([]session.Warning, error) {
	if o.Policy == nil {
		return nil, nil
	}
	rules, problems := compilePolicy(o)
	limit, _ := o.PersonLimit()
	g := &gatekeeper{policy: rules, ask: o.CanUseTool, told: told, timeout: limit, blind: o.Policy.Resolve == nil && o.Spawner != nil}
	own := make([]session.Hook, len(o.Hooks), len(o.Hooks)+1)
	for i, h := range o.Hooks {
		own[i] = g.watch(h)
	}
	o.Hooks = append(own, g.hook())
	if o.PermissionPromptToolName == "" { // with that tool two would decide, which is an error already
		o.CanUseTool = g.decide
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return policyWarnings(o, rules), nil
}

// policyWarnings are about a policy that decides less than its rules suggest,
// or more than other options do.
func policyWarnings(o *session.Options, rules *policy.Policy) []session.Warning {
	var all []session.Warning
	for _, w := range rules.Warnings() {
		option, problem := inPolicy(w)
		all = append(all, session.Warning{Option: option, Rule: w.Rule, Problem: problem, Fix: w.Fix})
	}
	if o.Policy.Default == policy.Agent {
		all = append(all, session.Warning{Option: "Policy.Default", Rule: string(policy.Agent),
			Problem: "leaves calls that no rule names to the agent, which runs some without asking: commands that only read, reads in the working directory, subagents",
			Fix:     "leave it empty to ask about them, or use deny"})
		return all
	}
	if len(o.AllowedTools) > 0 {
		all = append(all, session.Warning{Option: "AllowedTools", Rule: o.AllowedTools[0],
			Problem: "allows nothing that the Policy does not allow", Fix: "put the rules into Policy.Allow"})
	}
	return all
}

// compilePolicy is the policy of the options, with the places of this machine.
func compilePolicy(o *session.Options) (*policy.Policy, []error) {
	rules := *o.Policy
	if rules.Cwd == "" {
		if dir, err := filepath.Abs(o.Cwd); err == nil {
			rules.Cwd = slashed(dir)
		}
	}
	for _, dir := range o.AdditionalDirectories {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(rules.Cwd, dir)
		}
		rules.Directories = append(slices.Clip(rules.Directories), slashed(dir))
	}
	if rules.Home == "" {
		if home, err := os.UserHomeDir(); err == nil {
			rules.Home = slashed(home)
		}
		if home, given := o.Env["HOME"]; given {
			rules.Home = slashed(home)
		}
	}
	if rules.Resolve == nil && o.Spawner == nil {
		rules.Resolve = resolveLinks
	}
	compiled, err := policy.Compile(rules)
	var problems []error
	if o.PermissionPromptToolName != "" {
		problems = append(problems, &session.ConfigError{Option: "Policy", Problem: "cannot be combined with PermissionPromptToolName: only one of them can decide", Fix: "leave one of them out"})
	}
	for _, wrong := range parseErrors(err) {
		option, problem := inPolicy(wrong)
		problems = append(problems, &session.ConfigError{Option: option, Problem: fmt.Sprintf("%q ", wrong.Rule) + problem, Fix: wrong.Fix})
	}
	return compiled, problems
}

// inPolicy says in which field of the options a rule is, and what is wrong with it.
func inPolicy(wrong *policy.ParseError) (option, problem string) {
	option = "Policy." + strings.ToUpper(wrong.List[:1]) + wrong.List[1:]
	if wrong.Index >= 0 {
		option += fmt.Sprintf("[%d]", wrong.Index)
	}
	if wrong.Offset > 0 {
		problem = fmt.Sprintf("at byte %d ", wrong.Offset)
	}
	return option, problem + wrong.Problem
}

// slashed writes an absolute path as policies have it.
func slashed(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return path
}

// parseErrors are the errors that [policy.Compile] joins.
func parseErrors(err error) []*policy.ParseError {
	var all []*policy.ParseError
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		for _, err := range joined.Unwrap() {
			var one *policy.ParseError
			if errors.As(err, &one) {
				all = append(all, one)
			}
		}
	}
	return all
}
