package agent

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// bare reports whether a flag of either vendor's CLI takes no value. Every
// other flag takes one, as --flag=value or as --flag value.
func bare(name string) bool {
	switch name {
	case "verbose", "print", "debug", "continue", "fork-session",
		"await-initialize", "strict-mcp-config", "replay-user-messages",
		"include-partial-messages", "include-hook-events",
		"no-session-persistence", "allow-dangerously-skip-permissions",
		"dangerously-skip-permissions", "yolo", "session-mirror",
		"disable-builtin-skills", "bare":
		return true
	}
	return false
}

// flags are the arguments an agent was started with, in their order.
type flags []flag

type flag struct{ name, value string }

// parseFlags reads args; what is not a flag is ignored.
func parseFlags(args []string) flags {
	var f flags
	for i := 0; i < len(args); i++ {
		name, ok := strings.CutPrefix(args[i], "--")
		if !ok {
			continue
		}
		name, value, inline := strings.Cut(name, "=")
		if !inline && !bare(name) && i+1 < len(args) && !strings.HasPrefix(args[i+1], "--") {
			i++
			value = args[i]
		}
		f = append(f, flag{name, value})
	}
	return slices.Clone(f) // no longer than it must be
}

func (f flags) has(name string) bool {
	return slices.ContainsFunc(f, func(one flag) bool { return one.name == name })
}

// all returns the values of the flags of that name.
func (f flags) all(name string) (values []string) {
	for _, one := range f {
		if one.name == name {
			values = append(values, one.value)
		}
	}
	return values
}

// last returns the value of the last flag of that name.
func (f flags) last(name string) string {
	value := ""
	for _, one := range f {
		if one.name == name {
			value = one.value
		}
	}
	return value
}

func (f flags) number(name string) float64 {
	n, err := strconv.ParseFloat(f.last(name), 64)
	if err != nil {
		return 0
	}
	return n
}

// rules returns the permission rules of the flags named: Claude Code takes one
// list, qodercli one flag for each rule.
func (f flags) rules(names ...string) []rule {
	var out []rule
	for _, name := range names {
		for _, list := range f.all(name) {
			for _, text := range splitRules(list) {
				out = append(out, parseRule(text))
			}
		}
	}
	return out
}

// splitRules cuts at commas outside parentheses.
func splitRules(list string) []string {
	var out []string
	depth, from := 0, 0
	for i, c := range list + "," {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && (depth == 0 || i == len(list)):
			if s := strings.TrimSpace(list[from:i]); s != "" {
				out = append(out, s)
			}
			from = i + 1
		}
	}
	return out
}

// rule is a permission rule: "Bash", "Bash(git *)", "mcp__server".
type rule struct{ tool, content string }

func parseRule(s string) rule {
	tool, rest, ok := strings.Cut(s, "(")
	if !ok {
		return rule{tool: s}
	}
	return rule{tool: tool, content: strings.TrimSuffix(rest, ")")}
}

// String is the rule in the vendors' syntax.
func (r rule) String() string {
	if r.content == "" {
		return r.tool
	}
	return r.tool + "(" + r.content + ")"
}

// covers reports whether the rule speaks about this call.
func (r rule) covers(tool string, input Object) bool {
	if r.tool != tool && !strings.HasPrefix(tool, r.tool+"__") {
		return false
	}
	if r.content == "" || r.content == "*" {
		return true
	}
	subject := ""
	for _, key := range []string{"command", "file_path", "skill", "url", "path", "pattern"} {
		if v, ok := input[key].(string); ok {
			subject = v
			break
		}
	}
	if prefix, ok := strings.CutSuffix(r.content, ":*"); ok {
		return strings.HasPrefix(subject, prefix)
	}
	if prefix, ok := strings.CutSuffix(r.content, "*"); ok && !strings.Contains(prefix, "*") {
		return strings.HasPrefix(subject, prefix)
	}
	ok, err := path.Match(r.content, subject)
	return r.content == subject || err == nil && ok
}

func anyCovers(rules []rule, tool string, input Object) bool {
	for _, r := range rules {
		if r.covers(tool, input) {
			return true
		}
	}
	return false
}
