package sdk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/agent-troupe/troupe/policy"
)

// Policy are the rules of [Options].Policy, which decide about tool calls. Package
// policy documents the syntax; with it a program can also test rules and explain a
// decision.
//
// Troupe enforces the policy with a hook, for every call, in every permission mode and
// for subagents. A call that matches no rule goes to CanUseTool, and is denied without
// one; Default changes that. In permission mode dontAsk, a call that is not allowed is
// denied, and CanUseTool is not called.
//
// Package sdk fills in empty fields: Cwd with Options.Cwd or the directory of this
// program, Root with Cwd, Home with the HOME of the agent. It adds
// Options.AdditionalDirectories to Directories. If the agent runs on another machine,
// set these fields yourself. Resolve follows the symbolic links of this machine; if
// Options.Spawner is set, links are not followed. It is [policy.Rules].
type Policy = policy.Rules

// callDirectories are the directories of the latest tool calls. The agent tells
// a PreToolUse hook where a call runs, and not CanUseTool.
type callDirectories struct {
	mu    sync.Mutex
	calls [32]struct{ id, dir string }
	next  int
}

func (d *callDirectories) note(id, dir string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if id == "" {
		return
	}
	d.calls[d.next].id, d.calls[d.next].dir = id, dir
	d.next = (d.next + 1) % len(d.calls)
}

// of is the directory of a call, "" when it is not known.
func (d *callDirectories) of(id string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.calls { // the latest first
		if call := d.calls[(d.next+2*len(d.calls)-1-i)%len(d.calls)]; call.id == id && id != "" {
			return call.dir
		}
	}
	return ""
}

// compilePolicy is the policy that the options name, nil if none.
func compilePolicy(o *Options) (*policy.Policy, []error) {
	if o.Policy == nil {
		return nil, nil
	}
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
		problems = append(problems, &ConfigError{Option: "Policy", Problem: "cannot be combined with PermissionPromptToolName: only one of them can decide", Fix: "leave one of them out"})
	}
	for _, wrong := range parseErrors(err) {
		option, problem := inPolicy(wrong)
		problems = append(problems, &ConfigError{Option: option, Problem: fmt.Sprintf("%q ", wrong.Rule) + problem, Fix: wrong.Fix})
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

// wantsPerson reports whether the agent asks for more than the word of a rule:
// the call is a question to a person, or somebody else's rule, hook, mode or
// safety check wants one. Reasons that are not known count as such.
func wantsPerson(r *ToolPermissionRequest) bool {
	if r.RequiresUserInteraction || r.MatchedAskRule != nil || r.ClassifierApprovable != nil {
		return true
	}
	switch r.DecisionReasonType {
	case "", "other", "workingDir":
		return false
	case "subcommandResults":
		// Where an ask rule is about one of the commands the agent suggests no
		// rules (observed on Claude Code 2.1.329), and says no more.
		return len(r.Suggestions()) == 0
	case "rule":
		return !r.ServerPolicyAskOnly
	}
	return true
}
