package policy

import (
	"slices"
	"strings"
)

// unknownPart stands in a word's text for the expansion of a variable or a command. It
// does not occur in typed text.
const unknownPart = "\x01"

const (
	// globMark begins a segment that is a pattern: * stands for any text, and
	// unknownPart for any text that may begin with a dot.
	globMark = "\x00"
	// manyMark is a segment that stands for any number of them, starsMark the same for
	// names without a leading dot.
	manyMark  = "\x00\x00"
	starsMark = "\x00**"
	// maxBraces bounds the words that braces expand to.
	maxBraces = 64
)

// isGlob reports whether the shell may make another text of a word.
func isGlob(text string) bool { return strings.ContainsAny(text, "*?[]{}()$`"+unknownPart) }

// globs notes the files that a word may stand for which the shell expands, and those
// that its parts may stand for behind a prefix: if=$PWD/x, 'cat '*/x, file://$PWD/x.
func (s *script) globs(d *decision, seen map[string]bool, m mention, text, here string, unsure bool) {
	s.glob(d, seen, m, text, here, unsure)
	for i, chunk := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n'\"`;|&()<>", r) }) {
		if !isGlob(chunk) || !d.spend(4*len(chunk)) {
			continue
		}
		if i > 0 || len(chunk) < len(text) {
			s.glob(d, seen, m, chunk, here, true)
		}
		if isOption(chunk) && len(chunk) > 2 {
			s.glob(d, seen, m, chunk[2:], here, true)
		}
		for at := strings.IndexAny(chunk, "=:@,"); at >= 0; {
			chunk = chunk[at+1:]
			if !d.spend(len(chunk)) || !isGlob(chunk) {
				break
			}
			s.glob(d, seen, m, chunk, here, true)
			at = strings.IndexAny(chunk, "=:@,")
		}
	}
}

// glob notes the files that one pattern, or a word with something unknown in it, may
// stand for. That they are in the directory before the first * is sure.
func (s *script) glob(d *decision, seen map[string]bool, m mention, text, here string, unsure bool) {
	words, ok := expandBraces(text)
	if !ok {
		s.lost = true
		return
	}
	for _, text := range words {
		if !d.spend(2 * len(text)) {
			return
		}
		if strings.Trim(text, unknownPart+" ,:;=()") == "" {
			continue // it may be anything
		}
		if !isGlob(text) {
			s.mention(d, seen, m, text, here, true)
			continue
		}
		pattern := strings.Map(func(r rune) rune {
			if strings.ContainsRune("?[]{}()$`", r) {
				return '*'
			}
			return r
		}, text)
		before := pattern[:strings.IndexAny(pattern, "*"+unknownPart)]
		if i := strings.LastIndexByte(before, '/'); i > 0 {
			s.mention(d, seen, m, before[:i], here, unsure || len(words) > 1)
		}
		g := m
		g.glob = true
		if i := strings.LastIndex(pattern, unknownPart); i >= 0 {
			// It may hold slashes: all that is sure is what follows it.
			start := strings.LastIndexByte(pattern[:i], '/') + 1
			if _, rest, more := strings.Cut(pattern[start:], "/"); more && strings.Trim(rest, "/*.") != "" {
				s.mention(d, seen, g, "/"+manyMark+"/"+strings.Trim(pattern[start:], "/"), here, true)
			}
		}
		s.mention(d, seen, g, pattern, here, true)
	}
}

// expandBraces expands the braces of a word: a{b,c} is ab and ac. The expansion of a
// range is unknown. ok is false when there would be too many words.
func expandBraces(text string) (words []string, ok bool) {
	open, depth, at := -1, 0, []int{}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{':
			if depth++; depth == 1 {
				open, at = i, []int{i}
			}
		case ',':
			if depth == 1 {
				at = append(at, i)
			}
		case '}':
			if depth--; depth < 0 {
				depth = 0
			}
			if depth > 0 || open < 0 {
				continue
			}
			if len(at) == 1 && !strings.Contains(text[open:i], "..") {
				open = -1 // they stay, as in {}
				continue
			}
			rests, ok := expandBraces(text[i+1:])
			if !ok {
				return nil, false
			}
			middle := []string{unknownPart}
			if len(at) > 1 {
				middle = nil
				for n, from := range append(at, i)[:len(at)] {
					inner, ok := expandBraces(text[from+1 : append(at, i)[n+1]])
					if !ok {
						return nil, false
					}
					middle = append(middle, inner...)
				}
			}
			if len(middle)*len(rests) > maxBraces {
				return nil, false
			}
			for _, m := range middle {
				for _, rest := range rests {
					words = append(words, text[:open]+m+rest)
				}
			}
			return words, true
		}
	}
	return []string{text}, true
}

// markGlobs marks the segments of a path that are patterns.
func markGlobs(segments []string) {
	for i, name := range segments {
		switch {
		case name == manyMark:
		case name == "**":
			segments[i] = starsMark // to some shells it is any number of directories
		case strings.ContainsAny(name, "*"+unknownPart):
			segments[i] = globMark + name
		}
	}
}

// overlaps reports whether some name may match both patterns, by how they begin and
// end. A * of the shell does not match a leading dot. Neither does what is wholly
// unknown: it may be anything, and rules about paths are about names.
func (s *segment) overlaps(glob string) bool {
	const stars = "*" + unknownPart
	first, last := strings.IndexAny(s.pattern, `*?[\`), strings.LastIndexAny(s.pattern, `*?]\`)
	start, end := s.pattern, s.pattern
	if first >= 0 {
		start, end = s.pattern[:first], s.pattern[last+1:]
	}
	before, after := glob[:strings.IndexAny(glob, stars)], glob[strings.LastIndexAny(glob, stars)+1:]
	if (glob[0] == '*' || glob == unknownPart) && strings.HasPrefix(start, ".") {
		return false
	}
	return (strings.HasPrefix(start, before) || first >= 0 && strings.HasPrefix(before, start)) &&
		(strings.HasSuffix(end, after) || first >= 0 && strings.HasSuffix(after, end))
}

// meets reports whether the pattern may match a file that a pattern of the shell
// stands for, or all that is in such a directory.
func (p *pathPattern) meets(file []string, w *work) bool {
	return slices.ContainsFunc(p.rooted, func(pattern []segment) bool { return w.meet(pattern, file) })
}

// meet reports whether some path may match both patterns.
func (w *work) meet(pattern []segment, file []string) bool {
	at := make([]bool, len(pattern)+1) // how far the pattern may be used up
	at[0] = true
	skip := func() {
		for i := range pattern {
			at[i+1] = at[i+1] || at[i] && pattern[i].many
		}
	}
	skip()
	for _, name := range file {
		if !w.spend(len(pattern)) {
			return false
		}
		if name == manyMark || name == starsMark {
			for i := range pattern {
				at[i+1] = at[i+1] || at[i] && (name == manyMark || pattern[i].many || pattern[i].overlaps("*"))
			}
			continue
		}
		for i := len(pattern); i >= 0; i-- {
			stays := i < len(pattern) && pattern[i].many
			next := i > 0 && at[i-1] && !pattern[i-1].many && pattern[i-1].matches(name, w)
			at[i] = at[i] && stays || next
		}
		skip()
	}
	return at[len(pattern)]
}
