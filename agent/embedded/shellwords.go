package embedded

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const (
	// maxCommand and maxBrackets limit what is parsed, in bytes and in brackets, as those of
	// package policy do: the parser recurses, and a stack that overflows ends the program.
	maxCommand  = 16 << 10
	maxBrackets = 1 << 10
)

var errLong = errors.New("the command is too long to be read")

// parsed is a command of bash.
func parsed(command string) (*syntax.File, error) {
	if len(command) > maxCommand || strings.Count(command, "(")+strings.Count(command, "{") > maxBrackets {
		return nil, errLong
	}
	return syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command), "")
}

// operands are the words of a command that may be paths.
func operands(words []string) (list []string) {
	skip := 0
	switch filepath.Base(words[0]) {
	case "grep", "rg", "sed", "tr":
		if skip = 1; slices.ContainsFunc(words, func(w string) bool { return w == "-e" || w == "-f" }) {
			skip = 0
		}
	}
	for i, w := range words[1:] {
		switch {
		case w == "--" || strings.HasPrefix(w, "-") && w != "-":
			continue
		case skip > 0:
			skip--
			continue
		case i > 0 && (words[i] == "-n" || words[i] == "-c") && strings.Trim(w, "0123456789") == "":
			continue // head -n 5
		}
		list = append(list, w)
	}
	return list
}

// literally are words that the shell does not change, up to the first that it does.
func literally(list []*syntax.Word) (words []string, all bool) {
	for _, w := range list {
		text, ok := literal(w.Parts)
		if !ok {
			return words, false
		}
		words = append(words, text)
	}
	return words, true
}

func literal(parts []syntax.WordPart) (string, bool) { return literalAt(parts, "") }

// literalAt is literal where HOME is that, if it is not empty.
func literalAt(parts []syntax.WordPart, at string) (string, bool) {
	var b strings.Builder
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			b.WriteString(withoutBackslashes(p.Value))
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			text, ok := literalAt(p.Parts, at)
			if !ok || p.Dollar {
				return "", false
			}
			b.WriteString(text)
		case *syntax.ParamExp:
			if at == "" || !home(p) {
				return "", false
			}
			b.WriteString(at)
		default:
			return "", false
		}
	}
	return b.String(), true
}

// quoted reports whether the mark of a heredoc is quoted, so that the shell expands nothing.
func quoted(w *syntax.Word) bool {
	return w != nil && slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool {
		lit, plain := p.(*syntax.Lit)
		return !plain || strings.Contains(lit.Value, "\\")
	})
}

func withoutBackslashes(s string) string {
	if !strings.Contains(s, "\\") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
			if s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// braces are the texts that a text with braces stands for: a{b,c}d. Those that are not that
// stay.
func braces(s string) []string {
	open := strings.IndexByte(s, '{')
	if open < 0 {
		return []string{s}
	}
	depth, from := 0, open+1
	var choices []string
	for i := open; i < len(s); i++ {
		switch s[i] {
		case '{':
			depth++
		case ',':
			if depth == 1 {
				choices = append(choices, s[from:i])
				from = i + 1
			}
		case '}':
			if depth--; depth > 0 {
				continue
			}
			choices = append(choices, s[from:i])
			before, after := s[:open], ""
			if len(choices) == 1 { // it stays as it is written
				before, after = s[:open+1], "}"
			}
			var all []string
			rests := braces(s[i+1:])
			for _, c := range choices {
				for _, one := range braces(c) {
					for _, rest := range rests {
						if len(all) < maxChoices {
							all = append(all, before+one+after+rest)
						}
					}
				}
			}
			return all
		}
	}
	return []string{s}
}

// moves reports whether a command may change the shell's directory. A call beside it would begin in
// another directory than the one in which its gates saw it.
func (h *hands) moves(command string) (may bool) {
	file, err := parsed(command)
	if err != nil || h.of != nil { // a sub-agent's shell begins anew each time
		return err != nil
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		if c, call := n.(*syntax.CallExpr); call {
			words, all := literally(c.Args)
			may = may || !all || slices.ContainsFunc(words, func(w string) bool { return w == "cd" || w == "pushd" || w == "popd" })
		}
		return !may
	})
	return may
}
