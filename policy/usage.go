package policy

import (
	"slices"
	"strings"
	"sync"
)

// usage is a line of [harmless].
type usage struct {
	options  []string
	operands []string
	inner    map[string]*usage // words with a line of their own
	traits   map[string]bool   // the words of the line that stand for no word
}

// programs is [harmless], by the names of programs.
var programs = sync.OnceValue(func() map[string]*usage { //nolint:gochecknoglobals // made once, then only read
	root := &usage{inner: map[string]*usage{}}
	for line := range strings.Lines(strings.ReplaceAll(harmless, "\n\t", " ")) {
		head, all, _ := strings.Cut(line, ": ")
		head, _ = strings.CutSuffix(strings.TrimSpace(head), ":")
		at := []*usage{root}
		for _, names := range strings.Fields(head) {
			at = inside(at, strings.Split(names, "|"))
		}
		if head == "" {
			continue
		}
		var u usage
		u.add(strings.Fields(all))
		for _, node := range at {
			node.options, node.operands, node.traits = u.options, u.operands, u.traits
		}
	}
	return root.inner
})

// inside are the lines of names below other lines. It makes those that are not
// there yet.
func inside(above []*usage, names []string) []*usage {
	var all []*usage
	for _, u := range above {
		if u.inner == nil {
			u.inner = map[string]*usage{}
		}
		for _, name := range names {
			if u.inner[name] == nil {
				u.inner[name] = &usage{}
			}
			all = append(all, u.inner[name])
		}
	}
	return all
}

func (u *usage) add(tokens []string) {
	u.traits = map[string]bool{}
	for _, token := range tokens {
		switch token {
		case "named", "local", "here", "any", "files", "reads", "paths", "writes", "moves", "pattern", "prints", "runs", "code", "sh", "lang", "word",
			"scripted", "edits", "filter", "noop", "globs", "nested", "more", "checks", "adds", "execs", "loose":
			u.traits[token] = true
			continue
		case "run", "tool", "module":
			u.traits["runs"] = true
		case "script":
			u.traits["script"] = true
		}
		if strings.ContainsAny(token[:1], "-!>~%") {
			u.options = append(u.options, token)
		} else {
			u.operands = append(u.operands, token)
		}
	}
}

// is reports whether a line says that a program is something. nil is the line
// of a program that is not known.
func (u *usage) is(traits ...string) bool {
	return u != nil && slices.ContainsFunc(traits, func(trait string) bool { return u.traits[trait] })
}

// free reports whether the words of a program are not looked at.
func (u *usage) free() bool {
	return u == nil || u.is("any") || len(u.options)+len(u.operands) == 0 && u.is("files", "reads", "prints")
}

// program is the line of a program, by any name that it has on some system; nil
// when nothing is known of it.
func program(name string) *usage {
	name = programName(name)
	if u := programs()[name]; u != nil {
		return u
	}
	family := familyName(name)
	if u := programs()[family]; u != nil {
		return u
	}
	if short, found := strings.CutPrefix(family, "g"); found { // GNU's, where another is the usual one
		return programs()[short]
	}
	return nil
}

// familyName is a program's name without what tells versions and builds of it
// apart: perl5.36-x86_64-linux-gnu, vim.tiny, pip3.11.
func familyName(name string) string {
	full := name
	name = strings.TrimPrefix(name, "original-")
	for _, mark := range []string{"-x86_64", "-aarch64", "-arm", "-i386", "-i486", "-i586", "-i686"} {
		name, _, _ = strings.Cut(name, mark)
	}
	for {
		short := name
		for _, end := range []string{"-static", "-nox", "-gtk", "-x11", "-lucid", "-pgtk", "-cli", "-dbg", "-nightly", ".basic", ".tiny", ".nox", ".athena", ".gtk", ".gtk2", ".gtk3", ".motif", ".traditional", ".openbsd", ".posix"} {
			short = strings.TrimSuffix(short, end)
		}
		short = strings.TrimRight(short, "0123456789.-")
		if short == name || short == "" {
			break
		}
		name = short
	}
	if name == "" {
		return full
	}
	return name
}

// option says what is known of an option: '-', '!' or '>' as in [harmless], 0
// when nothing is. valued is set when its value is the next word; a value in
// the same word is returned.
func (u *usage) option(w string) (class byte, value string, valued bool) {
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
func (u *usage) letters(word string) (worst byte, value string, valued bool) {
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
