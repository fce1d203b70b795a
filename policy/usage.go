package policy

import (
	"slices"
	"strings"
)

// usage is a line of [harmless].
type usage struct {
	known    bool
	path     []string
	options  []string
	operands []string
	inner    []string // words with a line of their own
	named    bool     // only a rule that says the last word of the path is about it
	local    bool     // names with a colon are of other hosts
}

func usageOf(path []string) usage {
	u := usage{path: path}
	here := false // this line is about the path
	for line := range strings.Lines(harmless) {
		if all, more := strings.CutPrefix(line, "\t"); more {
			if here {
				u.add(all)
			}
			continue
		}
		here = false
		head, all, found := strings.Cut(line, ":")
		if first, _, _ := strings.Cut(head, " "); !found || !isOneOf(first, path[0]) {
			continue
		}
		names := strings.Fields(head)
		if len(names) < len(path) || !leads(names, path) {
			continue
		}
		u.known = true
		if len(names) > len(path) {
			u.inner = append(u.inner, strings.Split(names[len(path)], "|")...)
			continue
		}
		here = true
		u.add(all)
	}
	return u
}

func (u *usage) add(tokens string) {
	for _, token := range strings.Fields(tokens) {
		switch {
		case token == "named":
			u.named = true
		case token == "local":
			u.local = true
		case strings.ContainsAny(token[:1], "-!>"):
			u.options = append(u.options, token)
		default:
			u.operands = append(u.operands, token)
		}
	}
}

// leads reports whether a path leads to a line, or past it.
func leads(names, path []string) bool {
	for i, word := range path {
		if !isOneOf(names[i], word) {
			return false
		}
	}
	return true
}

// isOneOf reports whether a word is one of those between bars.
func isOneOf(names, word string) bool {
	for names != "" {
		var name string
		if name, names, _ = strings.Cut(names, "|"); name == word {
			return true
		}
	}
	return false
}

// option says what is known of an option: '-', '!' or '>' as in [harmless], 0
// when nothing is. valued is set when its value is the next word; a value in
// the same word is returned.
func (u usage) option(w string) (class byte, value string, valued bool) {
	name, value, attached := strings.Cut(w, "=")
	for _, o := range u.options {
		class, o := unmarked(o)
		form, found := strings.CutPrefix(o, name)
		switch {
		case !found:
		case form == "" && !attached, form == "?", form == "=" && attached:
			return class, value, false
		case form == "=":
			return class, "", true
		}
	}
	switch {
	case strings.HasPrefix(w, "--"):
		return 0, "", false
	case number(w) && slices.Contains(u.options, "-#"):
		return '-', "", false
	case slices.Contains(u.options, "-word"):
		return 0, "", false
	}
	return u.letters(w[1:])
}

// letters is option for short options in one word, with the least harmless of
// their classes.
func (u usage) letters(word string) (worst byte, value string, valued bool) {
	worst = '-'
	for i := range len(word) {
		letter := "-" + word[i:i+1]
		n := slices.IndexFunc(u.options, func(o string) bool {
			_, o = unmarked(o)
			return o == letter || o == letter+"=" || o == letter+"?"
		})
		if n < 0 {
			return 0, "", false
		}
		class, o := unmarked(u.options[n])
		if class != '-' && worst != '!' {
			worst = class
		}
		if o != letter {
			return worst, word[i+1:], o == letter+"=" && i == len(word)-1
		}
	}
	return worst, "", false
}

// unmarked takes the mark off an option of [harmless].
func unmarked(o string) (class byte, option string) {
	if o[0] == '-' {
		return '-', o
	}
	return o[0], o[1:]
}

// number reports whether an option is a number.
func number(w string) bool { return len(w) > 1 && strings.Trim(w[1:], "0123456789") == "" }
