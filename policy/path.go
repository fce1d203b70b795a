package policy

import (
	"iter"
	"path"
	"slices"
	"strings"
)

// places is what relative patterns and paths start from.
type places struct {
	cwd, root, home string
	directories     []string                     // besides cwd
	resolve         func(string) (string, error) // nil: links are not followed
}

// namesOf is a directory as it is written and, if it is another, as it resolves.
func (at places) namesOf(dir string) [][]string {
	names := [][]string{segmentsOf(dir)}
	if at.resolve != nil {
		if resolved, err := at.resolve(path.Clean(dir)); err == nil && path.IsAbs(resolved) && path.Clean(resolved) != path.Clean(dir) {
			names = append(names, segmentsOf(resolved))
		}
	}
	return names
}

// pathSpec is the specifier of file tools: a gitignore pattern, as it is written
// and for a file system that does not tell cases apart.
type pathSpec struct {
	exact, folded pathPattern
	inCwd         bool // it is about what is in Rules.Cwd
}

// pathPattern is a gitignore pattern below a directory, taken apart so that a
// path is matched in one pass.
type pathPattern struct {
	bases    [][]string // the directory that the pattern starts from, by each of its names
	segments []segment
	inside   []segment   // matches what the pattern matches, and all that is in it
	whole    []segment   // matches a directory of which the pattern matches all
	holdsAll bool        // whole is set
	rooted   [][]segment // inside and whole, from the root of the file system
}

// segment is a segment of a pattern, for path.Match.
type segment struct {
	pattern       string
	many, literal bool // it is **; it has no wildcard
}

func same(s string) string { return s }

func newPattern(bases [][]string, texts []string, below bool, fold func(string) string) pathPattern {
	var p pathPattern
	for _, base := range bases {
		folded := make([]string, len(base))
		for i, name := range base {
			folded[i] = fold(name)
		}
		p.bases = append(p.bases, folded)
	}
	for _, text := range texts {
		p.segments = append(p.segments, segment{pattern: fold(text), many: text == "**", literal: !strings.ContainsAny(text, `*?[\`)})
	}
	one, more := segment{pattern: "*"}, segment{pattern: "**", many: true}
	last := len(p.segments) - 1
	switch {
	case p.segments[last].many: // at the end it is at least one segment
		p.whole, p.holdsAll = p.segments[:last], true
		p.inside = append(slices.Clone(p.whole), one, more)
	case below:
		p.whole, p.holdsAll = p.segments, true
		p.inside = append(slices.Clone(p.whole), one, more)
	default:
		p.inside = append(slices.Clone(p.segments), more)
	}
	for _, base := range p.bases {
		var root []segment
		for _, name := range base {
			root = append(root, segment{pattern: name, literal: true})
		}
		p.rooted = append(p.rooted, slices.Concat(root, p.inside))
		if p.holdsAll {
			p.rooted = append(p.rooted, slices.Concat(root, p.whole))
		}
	}
	return p
}

func parsePath(content string, at places) (*pathSpec, *flaw) {
	bad := func(offset int, what, fix string) *flaw { return &flaw{offset, what, fix} }
	if strings.HasPrefix(content, "!") {
		return nil, bad(0, "negates a pattern", "put it in another list")
	}
	if i := strings.IndexByte(content, 0); i >= 0 {
		return nil, bad(i, "has a zero byte", "")
	}
	base, pattern, field := at.cwd, content, "Cwd"
	anchored := true
	switch {
	case strings.HasPrefix(content, "//"):
		base, pattern, field = "/", content[2:], ""
	case strings.HasPrefix(content, "~/"):
		base, pattern, field = at.home, content[2:], "Home"
	case strings.HasPrefix(content, "/"):
		base, pattern, field = at.root, content[1:], "Root"
	case strings.HasPrefix(content, "./"):
		pattern = content[2:]
	default:
		anchored = strings.Contains(strings.TrimSuffix(content, "/"), "/")
	}
	if base == "" {
		return nil, bad(0, "needs Rules."+field, "set it, or begin the pattern with // for the root of the file system")
	}
	offset := len(content) - len(pattern)
	var segments []string
	if !anchored {
		segments = []string{"**"}
	}
	for segment := range strings.SplitSeq(strings.TrimSuffix(pattern, "/"), "/") {
		switch _, err := path.Match(classes(segment), ""); {
		case segment == "" || segment == ".":
			return nil, bad(offset, "has an empty segment", "leave it out")
		case segment == "..":
			return nil, bad(offset, "leads out of its directory", "begin it with // for the root of the file system, or with /")
		case err != nil:
			return nil, bad(offset, "is not a pattern: "+err.Error(), "escape what is not meant with a backslash")
		}
		offset += len(segment) + 1
		segments = append(segments, classes(segment))
	}
	bases := at.namesOf(base)
	below := strings.HasSuffix(pattern, "/")
	s := &pathSpec{exact: newPattern(bases, segments, below, same), folded: newPattern(bases, segments, below, strings.ToLower)}
	start := slices.Clone(bases[0])
	for _, segment := range s.exact.segments {
		if !segment.literal {
			break
		}
		start = append(start, segment.pattern)
	}
	cwd := segmentsOf(at.cwd)
	s.inCwd = at.cwd != "" && len(start) >= len(cwd) && slices.Equal(cwd, start[:len(cwd)])
	return s, nil
}

// classes writes a gitignore segment for path.Match. A ** that is not a whole
// segment is a *.
func classes(segment string) string {
	if segment == "**" {
		return segment
	}
	var b strings.Builder
	for i := 0; i < len(segment); i++ {
		b.WriteByte(segment[i])
		switch rest := segment[i+1:]; {
		case segment[i] == '\\' && rest != "":
			i++
			b.WriteByte(segment[i])
		case segment[i] == '[' && strings.HasPrefix(rest, "!"):
			i++
			b.WriteByte('^')
		}
	}
	return b.String()
}

func segmentsOf(clean string) []string {
	clean = strings.Trim(path.Clean(clean), "/")
	if clean == "" || clean == "." {
		return nil
	}
	return strings.Split(clean, "/")
}

// under are the paths below each of the bases that the file is in.
func (p *pathPattern) under(file []string, w *work) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for _, base := range p.bases {
			if !w.spend(1 + len(base)/4) {
				return
			}
			if len(file) >= len(base) && slices.Equal(base, file[:len(base)]) && !yield(file[len(base):]) {
				return
			}
		}
	}
}

// fits reports whether the pattern matches the file, or a directory it is in.
func (p *pathPattern) fits(file []string, w *work) bool {
	for rest := range p.under(file, w) {
		if matches(p.inside, rest, w) {
			return true
		}
	}
	return false
}

// holds reports whether the pattern matches all that is in the directory.
func (p *pathPattern) holds(dir []string, w *work) bool {
	if p.fits(dir, w) {
		return true
	}
	if p.holdsAll {
		for rest := range p.under(dir, w) {
			if matches(p.whole, rest, w) {
				return true
			}
		}
	}
	return false
}

// reaches reports whether the pattern can match something in the directory.
func (p *pathPattern) reaches(dir []string, w *work) bool {
	for _, base := range p.bases {
		if !w.spend(1 + len(base)/4) {
			return true
		}
		if len(dir) < len(base) && slices.Equal(dir, base[:len(dir)]) {
			return true
		}
	}
	for rest := range p.under(dir, w) {
		if couldGoOn(p.segments, rest, w) {
			return true
		}
	}
	return false
}

func couldGoOn(pattern []segment, dir []string, w *work) bool {
	for i, name := range dir {
		if i >= len(pattern) {
			return false
		}
		if pattern[i].many {
			return true
		}
		if !pattern[i].matches(name, w) {
			return false
		}
	}
	return true
}

// matches is gitignore's: ** is any number of segments.
func matches(pattern []segment, file []string, w *work) bool {
	return w.wildcards(len(pattern), len(file), func(i int) bool { return pattern[i].many }, func(i, j int) bool { return pattern[i].matches(file[j], w) })
}

func (s *segment) matches(name string, w *work) bool {
	if strings.HasPrefix(name, globMark) {
		return w.spend(4+len(name)/4) && s.overlaps(name[len(globMark):])
	}
	if s.literal {
		return s.pattern == name
	}
	if !w.spend(2 + len(name)/2 + len(name)*len(s.pattern)/64) {
		return false
	}
	ok, _ := path.Match(s.pattern, name) // parsed before
	return ok
}
