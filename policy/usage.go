package policy

import (
	"slices"
	"strings"
)

// usage is what a section of programs.txt says.
type usage struct {
	options  map[string]option // by their names: -x, --long
	operands []string
	inner    map[string]*usage // words with their own section
	traits   []string
	sure     map[string]string // options of a filter that the agent is sure about, with their forms
}

type option struct {
	effect effect
	value  string // "": none; "=": in the same word or the next; "?": in the same word, perhaps
}

// effect is what an option makes a program do.
type effect int

const (
	unknown       effect = iota
	harmless             // neither of the others
	runsSomething        // or makes the rest mean something else
	writesFile
	saysOutput  // its value is what the program prints
	givesScript // its value is the script, in place of the first word
)

// is reports whether a section says that a program is something. nil is that
// of a program that is not known.
func (u *usage) is(traits ...string) bool {
	return u != nil && slices.ContainsFunc(traits, func(trait string) bool { return slices.Contains(u.traits, trait) })
}

// free reports whether the words of a program are not looked at.
func (u *usage) free() bool {
	return u == nil || u.is("any") || len(u.options)+len(u.operands) == 0 && u.is("files", "reads", "prints")
}

// program is the section of a program, by any name that it has on some system; nil
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

// familyName is a program's name without its version and build:
// perl5.36-x86_64-linux-gnu, vim.tiny, pip3.11.
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

// option says what an option does; unknown when it is not in the table. valued is set when
// its value is the next word; a value in the same word is returned.
func (u *usage) option(w string) (does effect, value string, valued bool) {
	name, value, attached := strings.Cut(w, "=")
	_, numbers := u.options["-#"]
	o, found := u.options[name]
	switch {
	case found && (o.value != "" || !attached):
		return o.effect, value, o.value == "=" && !attached
	case strings.HasPrefix(w, "--"):
		return unknown, "", false
	case numbers && number(w):
		return harmless, "", false
	case u.is("spelled"):
		return unknown, "", false
	}
	return u.letters(w[1:])
}

// letters is option for short options in one word, with the least harmless of
// their effects.
func (u *usage) letters(word string) (worst effect, value string, valued bool) {
	worst = harmless
	for i := range len(word) {
		o, found := u.options["-"+word[i:i+1]]
		if !found {
			return unknown, "", false
		}
		if o.effect != harmless && worst != runsSomething {
			worst = o.effect
		}
		if o.value != "" {
			return worst, word[i+1:], o.value == "=" && i == len(word)-1
		}
	}
	return worst, "", false
}

// number reports whether an option is a number.
func number(w string) bool { return len(w) > 1 && strings.Trim(w[1:], "0123456789") == "" }
