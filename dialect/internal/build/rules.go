package build

import (
	"slices"
	"strings"
	"unicode"

	"github.com/agent-troupe/troupe/dialect"
)

// AllowedTools are the user's rules and those that the skills need, unless the user has them already.
func AllowedTools(o *dialect.Input) []string {
	rules := slices.Clone(o.AllowedTools)
	add := func(rule string) {
		if !slices.Contains(o.AllowedTools, rule) {
			rules = append(rules, rule)
		}
	}
	if o.Skills.IsAll() {
		add("Skill")
	}
	for _, s := range o.Skills.Names() {
		add("Skill(" + s + ")")
	}
	return rules
}

// checkSkills refuses names whose rule would allow something else than the skill. A skill's name is that of its
// directory, or plugin:skill.
func checkSkills(p *Problems, names []string) {
	for _, n := range names {
		bad := func(why string) { p.Addf("Skills", "%q is not a skill's name: %s", n, why) }
		switch {
		case strings.TrimSpace(n) == "":
			bad("it is empty")
		case n != strings.TrimSpace(n):
			bad("it begins or ends with a space")
		case strings.ContainsAny(n, "(),") || strings.ContainsFunc(n, unicode.IsControl):
			bad("it has a parenthesis, a comma or a control character in it")
		case n == "*":
			bad("give All() for every skill")
		case strings.HasSuffix(n, ":*") || strings.HasSuffix(n, " *"):
			bad("it is a pattern")
		case n[0] == '/':
			bad("it begins with a slash, which is how a skill is called and no part of its name")
		case strings.Contains(n, `\\`) || strings.HasSuffix(n, `\`):
			bad("it has a backslash where a rule would read it as an escape")
		}
	}
}

// Truthy reports whether a variable is switched on, as the agents read one.
func Truthy(value string) bool {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "1", "true", "yes", "on":
		return true
	}
	return false
}
