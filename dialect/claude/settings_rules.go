package claude

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/internal/optionfile"
)

// droppedRules finds the rules under permissions that the agent would leave out.
func droppedRules(permissions *optionfile.Node) []optionfile.Mistake {
	var all []optionfile.Mistake
	for _, list := range permissions.Pairs {
		name := list.Key.Text
		if !slices.Contains([]string{"allow", "deny", "ask"}, name) {
			continue
		}
		for i, rule := range list.Value.List {
			if rule.Kind != optionfile.Text {
				continue // the schema's
			}
			if problem, fix := droppedRule(rule.Text, name == "allow"); problem != "" {
				all = append(all, rule.Mistake(fmt.Sprintf("permissions.%s[%d]", name, i), fmt.Sprintf("%q %s", rule.Text, problem), fix))
			}
		}
	}
	return all
}

// oddEscape is an escaped parenthesis.
var oddEscape = regexp.MustCompile(`(^|[^\\])\\[()]`)

// droppedRule says why Claude Code 2.1.329 leaves a rule out; "": it takes the rule.
func droppedRule(rule string, allow bool) (problem, fix string) {
	if strings.TrimSpace(rule) == "" {
		return "is an empty rule", "leave it out"
	}
	tool, content, called, whole := ruleParts(rule)
	server := serverOf(tool)
	switch {
	case !whole:
		return "is not a rule", "write Tool or Tool(content), which ends with )"
	case called && content == "":
		return "has nothing in its parentheses", "write " + tool + " alone, or a pattern"
	case server != "" && called:
		return "is a rule for an MCP tool, which takes no pattern", "write " + tool + " alone"
	case allow && strings.Contains(tool, "*") && (server == "" || strings.Contains(server, "*")):
		return "allows tools by a wildcard that names no server", "write mcp__SERVER__*"
	case server != "":
		return "", ""
	case !strings.Contains(tool, "_") && tool != "" && strings.ToUpper(tool[:1]) != tool[:1]:
		return "names no tool: names begin with a capital letter", "write " + strings.ToUpper(tool[:1]) + tool[1:]
	case !called || content == "*":
		return "", ""
	case oddEscape.MatchString(content) && unescaped(content, '(') != unescaped(content, ')'):
		return "has an escaped parenthesis beside one that is not", `escape them in pairs, or write \\( for a backslash`
	}
	return droppedContent(tool, content)
}

// droppedContent says why the agent does not take a tool's pattern.
func droppedContent(tool, content string) (problem, fix string) {
	switch {
	case tool == "WebSearch" && strings.ContainsAny(content, "*?"):
		return "has a wildcard, which WebSearch does not take", "write exact words"
	case tool == "WebFetch" && !strings.HasPrefix(content, "domain:"):
		return "names no domain", "write WebFetch(domain:example.com)"
	case tool == "WebFetch" && strings.Contains(content, "://"):
		return "names no domain but an address", "write WebFetch(domain:example.com)"
	case tool == "Bash" && content == ":*":
		return "has an empty prefix", "write Bash"
	case slices.Contains([]string{"Read", "Write", "Edit", "Glob", "NotebookRead", "NotebookEdit", "Cd"}, tool) && strings.Contains(content, ":*"):
		return "has :*, which only rules for Bash take", "write a pattern of files, such as src/**"
	}
	return "", ""
}

// ruleParts are the tool and the pattern of a rule. called says that it has parentheses, whole that it can be read.
func ruleParts(rule string) (tool, content string, called, whole bool) {
	if !strings.ContainsAny(rule, "()") {
		return rule, "", false, true
	}
	open, shut := -1, -1
	for i := range len(rule) {
		if escaped(rule, i) {
			continue
		}
		if rule[i] == '(' && open < 0 {
			open = i
		}
		if rule[i] == ')' {
			shut = i
		}
	}
	if open < 0 && shut < 0 {
		return rule, "", false, true
	}
	if open < 0 || shut <= open || shut != len(rule)-1 || strings.ContainsAny(rule[:open], "()") {
		return "", "", false, false
	}
	return rule[:open], rule[open+1 : shut], true, true
}

// escaped reports whether an odd number of backslashes is before the byte at i.
func escaped(text string, i int) bool {
	n := 0
	for i--; i >= 0 && text[i] == '\\'; i-- {
		n++
	}
	return n%2 == 1
}

func unescaped(text string, c byte) int {
	n := 0
	for i := range len(text) {
		if text[i] == c && !escaped(text, i) {
			n++
		}
	}
	return n
}

// serverOf is the MCP server that a tool's name names; "": none.
func serverOf(tool string) string {
	rest, ok := strings.CutPrefix(tool, "mcp__")
	if !ok {
		return ""
	}
	if server, _, found := strings.Cut(rest, "__"); found {
		return server
	}
	return rest
}
