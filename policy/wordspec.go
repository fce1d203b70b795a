package policy

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// wordSpec is a word of a [commandSpec]: the text between its wildcards, or,
// without any, the whole of it.
type wordSpec []string

func (w wordSpec) literal() bool { return len(w) == 1 }

// any reports whether the word is nothing but a wildcard, which stands for any
// number of words.
func (w wordSpec) any() bool {
	return !slices.ContainsFunc(w, func(s string) bool { return s != "" }) && len(w) > 1
}

func (w wordSpec) fits(s string, work *work) bool {
	if w.literal() {
		return s == w[0]
	}
	if !work.spend(1 + len(s)/16*len(w)) {
		return false
	}
	s, found := strings.CutPrefix(s, w[0])
	if !found {
		return false
	}
	for _, middle := range w[1 : len(w)-1] {
		i := strings.Index(s, middle)
		if i < 0 {
			return false
		}
		s = s[i+len(middle):]
	}
	return strings.HasSuffix(s, w[len(w)-1])
}

// readWordSpec reads a word of a rule: wildcards are the stars without quotes.
func readWordSpec(w *syntax.Word) (wordSpec, bool) {
	spec := wordSpec{""}
	add := func(s string) { spec[len(spec)-1] += s }
	for _, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			for i := 0; i < len(part.Value); i++ {
				switch c := part.Value[i]; {
				case c == '\\' && i+1 < len(part.Value):
					i++
					add(part.Value[i : i+1])
				case c == '*':
					spec = append(spec, "")
				default:
					add(string(c))
				}
			}
		case *syntax.SglQuoted, *syntax.DblQuoted:
			quoted := readWord(&syntax.Word{Parts: []syntax.WordPart{part}})
			if !quoted.known {
				return nil, false
			}
			add(quoted.text)
		default:
			return nil, false
		}
	}
	return spec, true
}
