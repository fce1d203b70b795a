package policy

import (
	"path"
	"slices"
	"strings"
)

// places is what relative patterns and paths start from.
type places struct{ cwd, root, home string }

// pathSpec is the specifier of file tools: a gitignore pattern.
type pathSpec struct {
	base     []string // the directory that the pattern starts from
	segments []string // each for path.Match, or **
	below    bool     // the pattern is a directory: it matches what is in it
	at       places
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
	s := &pathSpec{base: segmentsOf(base), below: strings.HasSuffix(pattern, "/"), at: at}
	offset := len(content) - len(pattern)
	if !anchored {
		s.segments = []string{"**"}
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
		s.segments = append(s.segments, classes(segment))
	}
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

// fold is the pattern for a file system that does not tell cases apart.
func (s *pathSpec) fold() *pathSpec {
	lower := func(all []string) []string {
		out := make([]string, len(all))
		for i, one := range all {
			out[i] = strings.ToLower(one)
		}
		return out
	}
	return &pathSpec{lower(s.base), lower(s.segments), s.below, s.at}
}

// under cuts the base off an absolute path.
func (s *pathSpec) under(file []string) ([]string, bool) {
	if len(file) < len(s.base) {
		return nil, false
	}
	for i, segment := range s.base {
		if file[i] != segment {
			return nil, false
		}
	}
	return file[len(s.base):], true
}

// fits reports whether the pattern matches the file, or a directory it is in.
func (s *pathSpec) fits(file []string) bool {
	rest, ok := s.under(file)
	if !ok {
		return false
	}
	for n := 1; n <= len(rest); n++ {
		if s.below && n == len(rest) {
			return false
		}
		if matchSegments(s.segments, rest[:n]) {
			return true
		}
	}
	return false
}

// mentioned reports whether a word of a shell command names a file that the
// pattern matches, seen from one of the directories: .env, --file=.env, HEAD:.env, 'cat .env'.
func (s *pathSpec) mentioned(word string, from []string) bool {
	folded := s.fold()
	pieces := strings.FieldsFunc(word, func(r rune) bool { return strings.ContainsRune(" \t\n'\"`;|&()<>{}$=:@,", r) })
	if isOption(word) && len(word) > 2 {
		pieces = append(pieces, word[2:]) // -ffile
	}
	return slices.ContainsFunc(append(pieces, word), func(piece string) bool {
		return piece != "" && slices.ContainsFunc(from, func(dir string) bool {
			file, ok := s.at.absolute(below(dir, piece))
			lower := segmentsOf(strings.ToLower(file))
			return ok && (folded.fits(lower) || folded.holds(lower) || newFile(file, false).odd)
		})
	})
}

// holds reports whether the pattern matches all that is in the directory.
func (s *pathSpec) holds(dir []string) bool {
	if s.fits(dir) {
		return true
	}
	rest, ok := s.under(dir)
	if !ok {
		return false
	}
	if s.below && len(rest) > 0 {
		return matchSegments(s.segments, rest)
	}
	last := len(s.segments) - 1
	return s.segments[last] == "**" && (last == 0 && len(rest) == 0 || matchSegments(s.segments[:last], rest))
}

// reaches reports whether the pattern can match something in the directory.
func (s *pathSpec) reaches(dir []string) bool {
	if len(dir) < len(s.base) {
		_, above := (&pathSpec{base: dir}).under(s.base)
		return above
	}
	rest, ok := s.under(dir)
	return ok && couldGoOn(s.segments, rest)
}

func couldGoOn(pattern, dir []string) bool {
	for i, segment := range dir {
		if i >= len(pattern) {
			return false
		}
		if pattern[i] == "**" {
			return true
		}
		if ok, _ := path.Match(pattern[i], segment); !ok {
			return false
		}
	}
	return true
}

// matchSegments is gitignore's: ** is any number of segments, at the end of
// the pattern at least one.
func matchSegments(pattern, file []string) bool {
	if last := len(pattern) - 1; last >= 0 && pattern[last] == "**" {
		pattern = append(slices.Clone(pattern[:last]), "*", "**")
	}
	return wildcards(len(pattern), len(file), func(i int) bool { return pattern[i] == "**" }, func(i, j int) bool {
		ok, _ := path.Match(pattern[i], file[j]) // parsed before
		return ok
	})
}
