package command

import (
	"fmt"
	"strings"

	"github.com/agent-troupe/troupe/base/spell"
)

// flagSpec is a flag of a command.
type flagSpec struct {
	name   string
	short  string // one letter, or ""
	arg    string // what its value is called; "" for a switch
	help   string
	option string // the field of sdk.Options that it sets, or ""
	set    func(s *settings, value string) error
}

// parse reads flags and words in any order. Values follow their flag or "=";
// "--" ends the flags. Package flag stops at the first word, takes --json=false,
// cannot tell "--" from a value, and says what is wrong in texts that would have
// to be parsed to advise about it.
func parse(specs []flagSpec, args []string, s *settings) error {
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if arg == "--" {
			s.words = append(s.words, args...)
			return nil
		}
		if arg == "-" || !strings.HasPrefix(arg, "-") {
			s.words = append(s.words, arg)
			continue
		}
		name, value, inline := strings.Cut(arg, "=")
		spec := find(specs, name)
		switch {
		case spec == nil:
			return unknownFlag(specs, name)
		case spec.arg == "" && inline:
			return &usageError{fmt.Sprintf("--%s takes no value", spec.name), "write it without " + arg[len(name):]}
		case spec.arg != "" && !inline:
			if len(args) == 0 {
				return &usageError{fmt.Sprintf("--%s needs a value", spec.name), fmt.Sprintf("write --%s %s", spec.name, spec.arg)}
			}
			value, args = args[0], args[1:]
		}
		if err := spec.set(s, value); err != nil {
			return &usageError{problem: fmt.Sprintf("--%s: %v", spec.name, err)}
		}
		s.given = append(s.given, spec.name)
	}
	return nil
}

// find takes --name, -name and -n.
func find(specs []flagSpec, arg string) *flagSpec {
	name := strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-")
	for i := range specs {
		if specs[i].name == name || specs[i].short != "" && "-"+specs[i].short == arg {
			return &specs[i]
		}
	}
	return nil
}

func unknownFlag(specs []flagSpec, arg string) error {
	name := strings.TrimLeft(arg, "-")
	var names []string
	for _, f := range specs {
		names = append(names, f.name)
	}
	fix := "troupe help run lists them all; put -- before a prompt that begins with a dash"
	if near := nearest(name, names); near != "" {
		fix = "did you mean --" + near + "?"
	}
	return &usageError{"there is no flag " + arg, fix}
}

func unknownCommand(name string) error {
	if near := nearest(name, []string{"run", "chat", "batch", "ctl", "approvals", "options", "sessions", "ps", "top", "mcp", "acp", "guard", "version", "help"}); near != "" {
		return &usageError{fmt.Sprintf("there is no command %q", name), "did you mean troupe " + near + "?"}
	}
	if strings.HasPrefix(name, "-") {
		return &usageError{"a flag comes before the command", "write troupe run [flags] PROMPT"}
	}
	return &usageError{fmt.Sprintf("there is no command %q", name), fmt.Sprintf("to give it to an agent: troupe run %q", name)}
}

// nearest is the one of names that is at most two letters off, and at most half of its
// letters, or "".
func nearest(name string, names []string) string {
	best, least := "", 3
	for _, n := range names {
		if d := spell.Distance(name, n); d < least && 2*d <= len(n) {
			best, least = n, d
		}
	}
	return best
}

// split cuts a list at the commas outside of parentheses: a permission rule may
// hold some.
func split(list string) []string {
	var out []string
	depth, from := 0, 0
	cut := func(to int) {
		if s := strings.TrimSpace(list[from:to]); s != "" {
			out = append(out, s)
		}
		from = to + 1
	}
	for i, r := range list {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ',' && depth == 0:
			cut(i)
		}
	}
	cut(len(list))
	return out
}
