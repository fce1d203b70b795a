package policy

import (
	"slices"
	"strings"
)

// safeSed reports whether a script of sed only edits the text that goes through it: it
// runs nothing, and names no file. In doubt it is not safe.
func safeSed(script string) bool {
	s := sedScript{rest: script}
	for depth := 0; ; {
		s.skip(" \t\n;")
		if s.rest == "" {
			return depth == 0
		}
		if !s.addresses() {
			return false
		}
		switch c := s.next(); c {
		case '{':
			depth++
			continue
		case '}':
			if depth--; depth < 0 {
				return false
			}
		case 'p', 'd', 'n', 'N', 'D', 'G', 'H', 'h', 'g', 'x', 'P', '=', 'z':
		case 'q', 'Q', 'l', 'L':
			s.skip(" 0123456789")
		case 'b', 't', 'T', ':':
			s.skip(" ")
			s.skip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
		case 'a', 'i', 'c': // a text, up to the end
			return depth == 0 && !strings.Contains(s.rest, "\n")
		case 's', 'y':
			mark := s.next()
			if mark == 0 || mark == '\\' || mark == '\n' || !s.until(mark, c == 's') || !s.until(mark, false) {
				return false
			}
			if c == 's' {
				s.skip("gpiIm0123456789") // not e, which runs, nor w, which writes
			}
		default:
			return false
		}
		s.skip(" \t")
		if s.rest != "" && strings.IndexByte("\n;}", s.rest[0]) < 0 {
			return false
		}
	}
}

// sedScript is the unread rest of a script.
type sedScript struct{ rest string }

func (s *sedScript) skip(set string) { s.rest = strings.TrimLeft(s.rest, set) }

func (s *sedScript) next() byte {
	if s.rest == "" {
		return 0
	}
	c := s.rest[0]
	s.rest = s.rest[1:]
	return c
}

// until goes past the next mark that is not escaped. In the brackets of a regular
// expression, which a replacement has not, a mark is a letter like others.
func (s *sedScript) until(mark byte, regex bool) bool {
	for i := 0; i < len(s.rest); i++ {
		switch c := s.rest[i]; {
		case c == '\\':
			i++
		case c == '[' && regex:
			n := brackets(s.rest[i:])
			if n == 0 {
				return false
			}
			i += n - 1
		case c == mark:
			s.rest = s.rest[i+1:]
			return true
		}
	}
	return false
}

// brackets is the length of the bracket expression that a text begins with; 0 when that
// is not certain.
func brackets(text string) int {
	at := 1
	if strings.HasPrefix(text[at:], "^") {
		at++
	}
	if strings.HasPrefix(text[at:], "]") {
		at++
	}
	for at < len(text) {
		switch text[at] {
		case ']':
			return at + 1
		case '\\', '\n':
			return 0
		case '[':
			if at+1 < len(text) && strings.IndexByte(":.=", text[at+1]) >= 0 {
				end := strings.Index(text[at+2:], text[at+1:at+2]+"]")
				if end < 0 {
					return 0
				}
				at += end + 3
			}
		}
		at++
	}
	return 0
}

// addresses goes past the lines that a command is for.
func (s *sedScript) addresses() bool {
	for {
		switch {
		case strings.HasPrefix(s.rest, "/"):
			s.next()
			if !s.until('/', true) {
				return false
			}
			s.skip("IM")
		case strings.HasPrefix(s.rest, `\`):
			return false
		default:
			s.skip("0123456789$+~")
		}
		s.skip(" ")
		if !strings.HasPrefix(s.rest, ",") {
			s.skip(" !")
			return true
		}
		s.next()
		s.skip(" ")
	}
}

// safeAwk reports whether a script of awk only reads its input and prints: it runs
// nothing, and neither reads nor writes a file that it names. The whole of it is looked
// at, strings and patterns too, so that no quoting can hide anything.
func safeAwk(script string) bool {
	for _, word := range []string{"system", "getline", "ARGV", "ARGC", "@", `\`} {
		if strings.Contains(script, word) {
			return false
		}
	}
	if strings.Contains(strings.ReplaceAll(script, "||", ""), "|") {
		return false
	}
	for rest := script; ; {
		_, after, found := strings.Cut(rest, "print")
		if !found {
			return true
		}
		end := strings.IndexAny(after, ";}\n")
		if end < 0 {
			end = len(after)
		}
		if strings.Contains(after[:end], ">") || strings.Contains(after[:end], `"`) && strings.Contains(after[end:], ">") {
			return false
		}
		rest = after
	}
}

func safeScriptOf(name, script string) bool {
	return name == "sed" && safeSed(script)
}

// edits reports whether a command edits the files in its words: sed -i.
func edits(words []string) bool {
	u := program(words[0])
	return u.is("edits") && slices.ContainsFunc(words[1:], func(w string) bool {
		does, _, _ := u.option(w)
		return isOption(w) && does == writesFile
	})
}
