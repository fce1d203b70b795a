package embedded

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// mild is a command with what surely only prints in a form that rules can be about: date
// +FORMAT is date, and what echo prints of variables that are no secrets is a word. The rest
// stays as it is written.
func mild(command string) string {
	if strings.ContainsAny(command, "\\`#\x00") || strings.Contains(command, "<<") {
		return command
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command), "")
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
		c, ok := n.(*syntax.CallExpr)
		if !ok || len(c.Args) < 2 || len(c.Assigns) > 0 {
			return true
		}
		switch name := c.Args[0].Lit(); name {
		case "date":
			if text, known := literal(c.Args[1].Parts); known && len(c.Args) == 2 && strings.HasPrefix(text, "+") {
				replace(c.Args[1], "")
			}
		case "xargs":
			if c.Args[1].Lit() == "echo" {
				replace(c.Args[0], "")
			}
		case "echo", "printf":
			for _, w := range c.Args[1:] {
				for _, p := range variables(w.Parts) {
					replace(p, "x")
				}
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

// variables are the plain expansions in a word of variables that are no secrets.
func variables(parts []syntax.WordPart) (list []*syntax.ParamExp) {
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit, *syntax.SglQuoted:
		case *syntax.DblQuoted:
			list = append(list, variables(p.Parts)...)
		case *syntax.ParamExp:
			if p.Excl || p.Length || p.Width || p.Index != nil || p.Slice != nil || p.Repl != nil || p.Exp != nil || p.Names != 0 || p.Param == nil {
				return nil
			}
			switch p.Param.Value {
			case "HOME", "PWD", "OLDPWD", "USER", "LOGNAME", "SHELL", "PATH", "TMPDIR", "LANG", "TERM", "HOSTNAME", "UID", "EUID", "SHLVL", "RANDOM", "SECONDS", "LINENO", "BASH_VERSION", "OSTYPE", "HOSTTYPE", "MACHTYPE":
				list = append(list, p)
			}
		}
	}
	return list
}
