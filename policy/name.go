package policy

import (
	"strings"
	"unicode"
)

// nameSpec is the specifier of skills and subagents: a name, or how names
// begin.
type nameSpec struct {
	name string
	open bool
}

func parseName(content string) (*nameSpec, *flaw) {
	s := &nameSpec{name: content}
	for _, end := range []string{":*", " *", "*"} {
		if name, found := strings.CutSuffix(content, end); found {
			s.name, s.open = name, true
			break
		}
	}
	if i := strings.IndexAny(s.name, "* \t\r\n"); i >= 0 || s.name == "" {
		return nil, &flaw{max(i, 0), "is not a name", "write a name, or the start of one with :* behind it"}
	}
	return s, nil
}

// namePart is a skill's or a subagent's name.
type namePart string

func readNames(tool string, in input) subject {
	keys := []string{"skill", "command"}
	if isAgentTool(tool) {
		keys = []string{"subagent_type", "agent"}
	}
	names, ok := in.texts(keys...)
	s := subject{}
	switch {
	case !ok:
		s.unclear = "the input does not say which one in words"
	case len(names) == 0:
		s.unclear = "the input does not say which one"
	}
	for _, name := range names {
		s.parts = append(s.parts, namePart(strings.TrimPrefix(name, "/")))
	}
	return s
}

func (n namePart) String() string { return string(n) }

func (n namePart) fits(s *nameSpec, name string) bool {
	rest, found := strings.CutPrefix(name, s.name)
	return found && (rest == "" || s.open)
}

func (n namePart) covered(spec specifier, _ *work) (bool, string) {
	s, ok := spec.(*nameSpec)
	return ok && n.fits(s, string(n)), ""
}

func (n namePart) stopped(spec specifier, w *work) match {
	s, ok := spec.(*nameSpec)
	if !ok {
		return no
	}
	if !w.spend(1 + len(n)/2) {
		return maybe
	}
	folded := nameSpec{strings.ToLower(s.name), s.open}
	// A name may be followed by arguments, and qualified by a plugin's name.
	name, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(string(n))), " ")
	if n.fits(&folded, name) {
		return yes
	}
	for _, unqualified, more := strings.Cut(name, ":"); more; _, unqualified, more = strings.Cut(unqualified, ":") {
		if n.fits(&folded, unqualified) {
			return maybe
		}
	}
	if !plain(string(n)) {
		return maybe
	}
	return no
}

// plain reports whether the text holds only printable ASCII, so that it looks
// like nothing else.
func plain(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsPrint(r) })
}
