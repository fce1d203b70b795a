package policy

import (
	"path"
	"strings"
	"unicode"
)

// filePart is a path that a tool works on.
type filePart struct {
	text string   // as it is meant: absolute and clean
	file []string // its segments
	tree bool     // the tool works on all that is below
	// odd is set when the path may be another name for something.
	odd bool
}

// readFile finds the paths in the input of a file tool.
func (p *Policy) readFile(tool string, in input) subject {
	paths, ok := in.texts("file_path", "notebook_path", "path")
	tree := tool == "Grep" || tool == "Glob" || tool == "LS"
	s := subject{}
	switch {
	case !ok:
		s.unclear = "the input has a path that is no text"
	case len(paths) == 0 && !tree:
		s.unclear = "the input has no path"
	case len(paths) == 0:
		paths = []string{"."}
	}
	if pattern, _, ok := in.text("pattern"); tool == "Glob" && (!ok || strings.HasPrefix(pattern, "/") || strings.HasPrefix(pattern, "~") || strings.Contains(pattern, "..") || strings.Contains(pattern, `\`)) {
		s.unclear = "the pattern may lead out of its directory"
	}
	for _, text := range paths {
		clean, ok := p.places.absolute(text)
		if !ok {
			s.unclear = "the path " + quoted(text) + " cannot be made absolute"
			continue
		}
		if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar }) {
			s.unclear = "the path has characters that cannot be seen"
		}
		if text != strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == '\uFEFF' }) {
			s.unclear = "the path has white space around it, which the agent may take away"
		}
		s.parts = append(s.parts, newFile(clean, tree))
		if p.resolve == nil {
			continue
		}
		resolved, err := p.resolve(clean)
		if err != nil || !path.IsAbs(resolved) {
			s.unclear = "the path " + quoted(clean) + " does not resolve"
			continue
		}
		if resolved = path.Clean(resolved); resolved != clean {
			s.parts = append(s.parts, newFile(resolved, tree))
		}
	}
	return s
}

func quoted(s string) string { return `"` + s + `"` }

// absolute makes a path what the agents make of it: relative to Cwd, with ..
// taken out before any symbolic link is followed.
func (at places) absolute(text string) (string, bool) {
	switch {
	case text == "~" || strings.HasPrefix(text, "~/"):
		if at.home == "" {
			return "", false
		}
		return path.Join(at.home, text[1:]), true
	case path.IsAbs(text):
		return path.Clean(text), true
	case at.cwd == "":
		return "", false
	}
	return path.Join(at.cwd, text), true
}

func newFile(clean string, tree bool) filePart {
	// Below /proc and /dev/fd the whole file system has other names, and where
	// a backslash separates directories so has every path.
	odd := strings.HasPrefix(clean, "/proc/") || strings.HasPrefix(clean, "/dev/fd/") || strings.Contains(clean, `\`)
	return filePart{clean, segmentsOf(clean), tree, odd}
}

func (f filePart) String() string { return f.text }

func (f filePart) covered(spec specifier) (bool, string) {
	s, ok := spec.(*pathSpec)
	switch {
	case !ok:
		return false, ""
	case f.odd:
		return false, "the path may be another name for something"
	case f.tree:
		return s.holds(f.file), ""
	}
	return s.fits(f.file), ""
}

func (f filePart) stopped(spec specifier) match {
	s, ok := spec.(*pathSpec)
	switch {
	case !ok:
		return no
	case s.fits(f.file), f.tree && s.holds(f.file):
		return yes
	case f.odd:
		return maybe
	}
	folded, file := s.fold(), segmentsOf(strings.ToLower(f.text))
	if folded.fits(file) || f.tree && folded.reaches(file) {
		return maybe
	}
	return no
}
