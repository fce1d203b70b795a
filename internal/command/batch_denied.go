package command

import (
	"context"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/sdk"
)

// callClass is a class of tool calls. A rule with the name of each tool allows all of it.
type callClass struct {
	name  string
	tools []string
	also  []string // other tools that rules may name
}

func callClasses() []callClass {
	return []callClass{
		{"reading files", []string{"Read", "Grep", "Glob"}, []string{"LS", "NotebookRead"}},
		{"writing files", []string{"Edit", "Write", "NotebookEdit"}, []string{"MultiEdit"}},
		{"commands", []string{"Bash"}, []string{"BashInput", "Monitor", "PowerShell"}},
		{"the network", []string{"WebFetch", "WebSearch"}, nil},
		{"subagents", []string{"Agent"}, []string{"Task"}},
		{"skills", []string{"Skill"}, nil},
	}
}

// Classes of the tools that callClasses does not name.
const (
	classMCP   = "MCP tools"
	classOther = "other tools that have an effect outside of the agent"
)

// deniedClasses are the classes with calls that no allow rule is about, each with the rules
// that allow a part of it.
func deniedClasses(allow []string) []string {
	classes := callClasses()
	rules, whole := map[string][]string{}, map[string]bool{}
	for _, text := range allow {
		r, err := policy.ParseRule(text)
		if err != nil {
			continue // the mistake is reported elsewhere
		}
		class := classOther
		if strings.HasPrefix(r.ToolName, "mcp__") {
			class = classMCP
		}
		for _, c := range classes {
			if slices.Contains(c.tools, r.ToolName) || slices.Contains(c.also, r.ToolName) {
				class = c.name
			}
		}
		rules[class] = append(rules[class], text)
		if r.RuleContent == "" || r.RuleContent == "*" {
			whole[r.ToolName] = true
		}
	}
	whole["Agent"] = whole["Agent"] || whole["Task"] // two names of one tool
	var denied []string
	for _, c := range append(classes, callClass{name: classMCP}, callClass{name: classOther}) {
		some := func(tool string) bool { return !whole[tool] }
		if len(c.tools) > 0 && !slices.ContainsFunc(c.tools, some) {
			continue
		}
		if except := rules[c.name]; len(except) > 0 {
			c.name += " (except " + strings.Join(except, ", ") + ")"
		}
		denied = append(denied, c.name)
	}
	return denied
}

// allow makes the permissions of an unattended session, and reports once what they deny.
func (s *settings) allow(c *console) {
	allowed := s.opts.AllowedTools
	if s.opts.Policy != nil {
		allowed = s.opts.Policy.Allow
	}
	switch {
	case s.inCloud():
	case s.yes:
		if _, err := policy.Compile(policy.Rules{Allow: s.opts.AllowedTools}); err == nil {
			s.opts.AllowedTools = nil // the callback allows them; rules that hide it would be a warning of each task
		}
		s.opts.CanUseTool = func(_ context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			return sdk.Allow(), nil
		}
	case s.batch.job.Approvals != nil || s.quiet || s.demo != nil:
	case s.isACP():
		c.note("what the agent asks permission for is denied; --yes allows it")
	default:
		c.note("calls that no rule allows are denied: %s;\n--allowed-tools 'Read,Bash(go test *)' or --yes allows more", strings.Join(deniedClasses(allowed), ", "))
	}
}
