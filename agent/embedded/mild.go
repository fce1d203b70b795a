package embedded

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// mild is a command with what surely only prints in a form that rules can be about: date
// +FORMAT is date, and what echo prints of HOME is a word. The rest stays as it is written.
func mild(command string) string {
	if strings.ContainsAny(command, "\\`#\x00") || strings.Contains(command, "<<") {
		return command
	}
	file, err := parsed(command)
	if err != nil {
		return command
	}
	type change struct {
		from, to int
		text     string
	}
	var changes []change
	replace := func(n syntax.Node, text string) {
		changes = append(changes, change{int(n.Pos().Offset()), int(n.End().Offset()), text})
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.TestClause:
			switch text := command[n.Pos().Offset():n.End().Offset()]; {
			case plainTest.MatchString(text) && strings.Contains(text, " -"):
				replace(n, text[1:len(text)-1]) // of a file: [ has the same operators, and rules know their paths
			case plainTest.MatchString(text), plainComparison.MatchString(text):
				replace(n, "true")
			}
			return false
		case *syntax.ArithmExp:
			if plainSum.MatchString(command[n.Pos().Offset():n.End().Offset()]) {
				replace(n, "1")
			}
			return false
		case *syntax.CallExpr:
			if len(n.Args) > 1 && len(n.Assigns) == 0 {
				soften(n.Args, replace)
			}
		}
		return true
	})
	slices.SortFunc(changes, func(a, b change) int { return a.from - b.from })
	for _, c := range slices.Backward(changes) {
		command = command[:c.from] + c.text + command[c.to:]
	}
	return command
}

var (
	// A test without a word or an operator at which the shell evaluates: -eq and the like evaluate
	// a name, also _, which is the last word of the command before; -v and -R take an index.
	plainTest       = regexp.MustCompile(`^\[\[( +([A-Za-z0-9_./=!<>~][A-Za-z0-9_./=!<>~-]*|-[abcdefghknoprstuwxzGLNOS]|-nt|-ot|-ef))+ +\]\]$`)
	plainComparison = regexp.MustCompile(`^\[\[( +!)? +-?[0-9]+ +-(eq|ne|lt|le|gt|ge) +-?[0-9]+ +\]\]$`)
	plainSum        = regexp.MustCompile(`^\$\(\([0-9 +*/%()-]+\)\)$`)
)

// soften replaces what a simple command of at least two words has that is harmless in it.
func soften(args []*syntax.Word, replace func(syntax.Node, string)) {
	words, all := literally(args)
	switch args[0].Lit() {
	case "date":
		if all && !slices.ContainsFunc(words[1:], func(w string) bool { return w != "-u" && w != "--utc" && !strings.HasPrefix(w, "+") }) {
			for _, w := range args[1:] {
				replace(w, "")
			}
		}
	case "command":
		if name := args[1].Lit(); name != "" && !strings.HasPrefix(name, "-") {
			replace(args[0], "")
		}
	case "xargs":
		if args[1].Lit() == "echo" {
			replace(args[0], "")
		}
	case "file": // it only has options that write
		if all && !slices.ContainsFunc(words[1:], func(w string) bool { return strings.HasPrefix(w, "-") }) {
			replace(args[0], "stat")
		}
	case "jq":
		if all && plainFilter(words) {
			replace(args[0], "cat")
			replace(args[1], "")
		}
	case "echo", "printf":
		for _, w := range args[1:] {
			if lit := w.Lit(); lit == "~" || strings.HasPrefix(lit, "~/") {
				replace(w, "x")
				continue
			}
			for _, p := range homes(w.Parts) {
				replace(p, "x")
			}
		}
	}
}

// plainFilter reports whether jq has no options, and a filter that sees its files alone.
func plainFilter(words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "-") }) && !filterMore.MatchString(words[1])
}

var filterMore = regexp.MustCompile(`(?i)env|input|import|include|debug|stderr|halt|\$__|getpath|limit`)

// homes are the plain expansions of HOME in a word.
func homes(parts []syntax.WordPart) (list []*syntax.ParamExp) {
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.DblQuoted:
			list = append(list, homes(p.Parts)...)
		case *syntax.ParamExp:
			if home(p) {
				list = append(list, p)
			}
		}
	}
	return list
}
