package policy

import (
	"iter"
	"strings"
)

// plain are the words of a command as rules about commands may allow them: literal, or
// with patterns that cannot become something else than files, or $?. why says what keeps
// the command from being so.
func (c *command) plain() (texts []string, why string) {
	const expands = "the shell expands a word of it"
	texts = make([]string, len(c.words))
	for i, w := range c.words {
		texts[i] = w.text
		switch {
		case w.known:
		case i == 0:
			return nil, expands
		case w.status && program(texts[0]).is("prints"):
			texts[i] = strings.ReplaceAll(w.text, unknownPart, "0")
		case !w.glob || !c.takes(w):
			return nil, expands
		}
	}
	return texts, ""
}

// takes reports whether a pattern does no more than to name files. A file may have the
// name of an option.
func (c *command) takes(w word) bool {
	u := program(c.words[0].text)
	if len(c.words) > 1 && u != nil && u.inner[c.words[1].text] != nil {
		u = u.inner[c.words[1].text]
	}
	start := w.text[:1]
	switch {
	case u.is("writes", "runs", "code", "sh", "lang"):
		return false
	case u.is("globs"), u.free():
		return true
	}
	return !strings.ContainsAny(start, "*?[-")
}

// runs are the places where the programs of a command are: the first, and that which a
// program runs that only limits or measures another one.
func (c *command) runs(texts []string) iter.Seq[int] {
	return func(yield func(int) bool) {
		for at := 0; at < len(texts) && yield(at); {
			next := wraps(texts[at:])
			if next == 0 || !c.words[min(at+next, len(texts)-1)].bare {
				return
			}
			at += next
		}
	}
}

// wraps is where the words have the program that their first one runs as it is, with
// limits to its time: timeout 60 go test. 0 when they do not.
func wraps(words []string) int {
	at := 1
	if words[0] == "xargs" {
		for at < len(words) && (words[at] == "-0" || words[at] == "-r" || words[at] == "--null" || words[at] == "--no-run-if-empty") {
			at++
		}
		if at < len(words) && (words[at] == "grep" || words[at] == "wc") {
			return at
		}
		return 0
	}
	if words[0] != "timeout" {
		return 0
	}
	for ; at < len(words) && isOption(words[at]); at++ {
		switch w := words[at]; {
		case w == "-v", w == "--verbose", w == "--foreground", w == "--preserve-status", strings.HasPrefix(w, "--kill-after="), strings.HasPrefix(w, "--signal="):
		case w == "-k", w == "-s":
			at++
		default:
			return 0
		}
	}
	if at+1 >= len(words) || strings.Trim(words[at], "0123456789.smhd") != "" || isOption(words[at+1]) {
		return 0
	}
	return at + 1
}
