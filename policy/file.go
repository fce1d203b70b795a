package policy

import (
	"path"
	"slices"
	"strings"
	"unicode"
)

// maxPath and maxDepth bound the paths that are held against patterns, in bytes
// and in segments. Linux takes no longer path.
const (
	maxPath  = 4096
	maxDepth = 128
)

// filePart is a path that a tool works on.
type filePart struct {
	text   string   // as it is meant: absolute and clean
	file   []string // its segments
	folded []string // the same in lower case
	tree   bool     // the tool works on all that is below
	odd    string   // why the path may be another name for something
	unsure bool     // the call may mean this path, or another one
}

func newFile(clean string, tree bool) filePart {
	f := filePart{text: clean, tree: tree}
	switch {
	case len(clean) > maxPath || strings.Count(clean, "/") > maxDepth:
		f.odd = "the path is too long"
		return f
	case inProcess(clean), strings.HasPrefix(clean, "/dev/fd/"), strings.Contains(clean, `\`):
		// Below /proc and /dev/fd the whole file system has other names, and
		// where a backslash separates directories so has every path.
		f.odd = "the path may be another name for something"
	}
	f.file, f.folded = segmentsOf(clean), segmentsOf(strings.ToLower(clean))
	return f
}

// inProcess reports whether a path is among the files of a process.
func inProcess(clean string) bool {
	rest, found := strings.CutPrefix(clean, "/proc/")
	first, _, below := strings.Cut(rest, "/")
	return found && (below || strings.Trim(first, "abcdefghijklmnopqrstuvwxyz") != "") && first != "sys" && first != "net"
}

// readFile finds the paths in the input of a file tool.
func (d *decision) readFile(tool string, in input) subject {
	paths, ok := in.texts("file_path", "filePath", "notebook_path", "path")
	tree := tool == "Grep" || tool == "Glob" || tool == "LS"
	s := subject{}
	switch {
	case !ok:
		s.unclear = "the input has a path that is not a string"
	case len(paths) == 0 && !tree:
		s.unclear = "the input has no path"
	case len(paths) == 0:
		paths = []string{"."}
	}
	if pattern, _, ok := in.text("pattern"); tool == "Glob" && (!ok || leadsOut(pattern)) {
		s.unclear = "the pattern may lead out of its directory"
	}
	for _, text := range paths {
		switch {
		case text == "~" || strings.HasPrefix(text, "~/"), path.IsAbs(text):
		case d.dir == "":
			s.unclear = "the directory of the call is not known"
		}
		if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar }) {
			s.unclear = "the path has characters that cannot be seen"
		}
		if text != strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == '\uFEFF' }) {
			s.unclear = "the path has white space around it, which the agent may take away"
		}
		found := false
		for i, dir := range d.directories() {
			clean, ok := d.places.absolute(dir, text)
			if !ok {
				continue
			}
			names, resolved := d.names(clean)
			if !resolved {
				s.unclear = "the path " + quoted(clean) + " does not resolve"
			}
			for _, name := range names {
				f := newFile(name, tree)
				f.unsure = i > 0
				if f.odd == "" && slices.ContainsFunc(f.file, oddName.MatchString) {
					f.odd = "the path may be another name for something"
				}
				if !slices.ContainsFunc(s.parts, func(p part) bool { return p.String() == name }) {
					s.parts = append(s.parts, f)
				}
			}
			found = true
		}
		if !found {
			s.unclear = "the path " + quoted(text) + " cannot be made absolute"
		}
	}
	return s
}

// leadsOut reports whether a pattern of Glob may match what is not below its
// directory. Some agents expand braces, out of which a .. or a slash could come.
func leadsOut(pattern string) bool {
	if strings.HasPrefix(pattern, "/") || strings.HasPrefix(pattern, "~") {
		return true
	}
	marks := []string{"..", `\`, "(", "[."}
	if strings.Contains(pattern, "{") {
		marks = append(marks, "{.", ",.", ".,", ".}", "{/", ",/", "{~", ",~", "{,", ",,", ",}")
	}
	return slices.ContainsFunc(marks, func(mark string) bool { return strings.Contains(pattern, mark) })
}

func quoted(s string) string { return `"` + s + `"` }

// names are the names of a path that rules are held against: as it is written,
// and as it resolves. ok is false when it does not resolve.
func (d *decision) names(clean string) (names []string, ok bool) {
	names = []string{clean}
	if d.places.resolve == nil || len(clean) > maxPath {
		return names, true
	}
	if !d.spend(resolveSteps) {
		return names, false
	}
	resolved, err := d.places.resolve(clean)
	if err != nil || !path.IsAbs(resolved) {
		return names, false
	}
	if resolved = path.Clean(resolved); resolved != clean {
		names = append(names, resolved)
	}
	return names, true
}

// absolute makes a path what the agents make of it: relative to a directory,
// with .. taken out before any symbolic link is followed.
func (at places) absolute(dir, text string) (string, bool) {
	switch {
	case text == "~" || strings.HasPrefix(text, "~/"):
		if at.home == "" {
			return "", false
		}
		return path.Join(at.home, text[1:]), true
	case path.IsAbs(text):
		return path.Clean(text), true
	case dir == "":
		return "", false
	}
	return path.Join(dir, text), true
}

func (f filePart) String() string { return f.text }

func (f filePart) covered(spec specifier, w *work) (bool, string) {
	s, ok := spec.(*pathSpec)
	switch {
	case !ok:
		return false, ""
	case f.odd != "":
		return false, f.odd
	case f.tree:
		return s.exact.holds(f.file, w), ""
	}
	return s.exact.fits(f.file, w), ""
}

func (f filePart) stopped(spec specifier, w *work) match {
	s, ok := spec.(*pathSpec)
	switch {
	case !ok:
		return no
	case s.exact.fits(f.file, w), f.tree && s.exact.holds(f.file, w), f.odd == "" && s.folded.fits(f.folded, w):
		// Letters that differ in case count as the same, as with Claude Code
		// 2.1.329 (observed): so do they on many file systems.
		if f.unsure {
			return maybe
		}
		return yes
	case f.odd != "", f.tree && s.folded.reaches(f.folded, w):
		return maybe
	}
	return no
}
