package embedded

import (
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

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
