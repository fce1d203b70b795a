package search

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// wildcard matches a whole path with slashes.
type wildcard struct {
	literal string         // the only path that matches, if all others are empty
	name    string         // what a path ends with that matches, as a whole segment or more
	ending  string         // what a path ends with that matches
	re      *regexp.Regexp // what a path matches
}

func (w *wildcard) matches(path string) bool {
	switch {
	case w.re != nil:
		return w.re.MatchString(path)
	case w.ending != "":
		return strings.HasSuffix(path, w.ending)
	case w.name != "":
		rest, found := strings.CutSuffix(path, w.name)
		return found && (rest == "" || strings.HasSuffix(rest, "/"))
	}
	return path == w.literal
}

// WildcardError is a wildcard that cannot be read.
type WildcardError struct {
	Glob    string // as its author wrote it
	Problem string
}

func (e *WildcardError) Error() string {
	return "error parsing glob '" + e.Glob + "': " + e.Problem
}

// maxWildcard limits wildcards, in bytes, as Linux limits paths.
const maxWildcard = 4096

// parseWildcard reads a wildcard: ? and * match within a directory, ** over directories,
// [a-z] a character, {a,b} one of several, and a backslash takes a character as it is. written
// is the wildcard as its author wrote it.
func parseWildcard(glob, written string) (*wildcard, error) {
	if len(glob) > maxWildcard {
		return nil, &WildcardError{strings.ToValidUTF8(written[:100], "") + "...", "it is too long"}
	}
	p := &wildcardParser{rest: glob, groups: [][]string{nil}}
	if problem := p.parse(); problem != "" {
		return nil, &WildcardError{written, problem}
	}
	if name, found := strings.CutPrefix(glob, "**/"); found && name != "" && !strings.ContainsAny(name, `*?[]{},\`) {
		return &wildcard{name: name}, nil
	}
	if name, found := strings.CutPrefix(glob, "**/*"); found && name != "" && !strings.ContainsAny(name, `*?[]{},\/`) {
		return &wildcard{ending: name}, nil
	}
	if glob != "" && !strings.ContainsAny(glob, `*?[]{},\`) {
		return &wildcard{literal: glob}, nil
	}
	re, err := regexp.Compile("(?s)^" + strings.Join(p.groups[0], "") + "$")
	if err != nil {
		return nil, &WildcardError{written, err.Error()} // too large
	}
	return &wildcard{re: re}, nil
}

// Parts of an expression that ** gives, as ripgrep has them.
const (
	anyPrefix = "(?:/?|.*/)"
	anySuffix = "/.*"
	anyMiddle = "(?:/|/.*/)"
)

// wildcardParser turns a wildcard into a regular expression.
type wildcardParser struct {
	rest   string
	prev   rune       // the character before; 0 at the beginning
	cur    rune       // the last one that was taken
	groups [][]string // tokens: of the whole, and of the alternatives that are open
	alts   [][]string // of each open {, the alternatives that have ended
}

func (p *wildcardParser) peek() (rune, bool) {
	if p.rest == "" {
		return 0, false
	}
	r, _ := utf8.DecodeRuneInString(p.rest)
	return r, true
}

func (p *wildcardParser) bump() (rune, bool) {
	r, ok := p.peek()
	if ok {
		_, n := utf8.DecodeRuneInString(p.rest)
		p.rest = p.rest[n:]
		p.prev, p.cur = p.cur, r
	}
	return r, ok
}

func (p *wildcardParser) push(token string) {
	last := len(p.groups) - 1
	p.groups[last] = append(p.groups[last], token)
}

func (p *wildcardParser) parse() (problem string) {
	for {
		r, ok := p.bump()
		if !ok {
			break
		}
		switch r {
		case '?':
			p.push("[^/]")
		case '*':
			p.star()
		case '[':
			problem = p.class()
		case '{':
			p.groups, p.alts = append(p.groups, nil), append(p.alts, nil)
		case '}':
			if len(p.alts) == 0 { // nothing matches, as observed of ripgrep 14.1.1
				p.push(`[^\x00-\x{10FFFF}]`)
				continue
			}
			p.closeAlternative()
			all := p.alts[len(p.alts)-1]
			p.groups, p.alts = p.groups[:len(p.groups)-1], p.alts[:len(p.alts)-1]
			if len(all) > 0 {
				p.push("(?:" + strings.Join(all, "|") + ")")
			}
		case ',':
			if len(p.alts) == 0 {
				p.push(",")
				continue
			}
			p.closeAlternative()
		case '\\':
			escaped, ok := p.bump()
			if !ok {
				return `dangling '\'`
			}
			p.push(regexp.QuoteMeta(string(escaped)))
		default:
			p.push(regexp.QuoteMeta(string(r)))
		}
		if problem != "" {
			return problem
		}
	}
	if len(p.alts) > 0 {
		return "unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)"
	}
	if g := p.groups[0]; len(g) == 1 && g[0] == anyPrefix {
		p.groups[0] = []string{".*"} // ** alone matches everything
	}
	return ""
}

// closeAlternative ends the alternative that is open. An empty one does not count.
func (p *wildcardParser) closeAlternative() {
	last := len(p.groups) - 1
	if one := strings.Join(p.groups[last], ""); one != "" {
		p.alts[len(p.alts)-1] = append(p.alts[len(p.alts)-1], one)
	}
	p.groups[last] = nil
}

// star reads * and **. Two stars span directories only where they are a whole segment.
func (p *wildcardParser) star() {
	prev := p.prev
	if next, ok := p.peek(); !ok || next != '*' {
		p.push("[^/]*")
		return
	}
	p.bump()
	last := len(p.groups) - 1
	next, more := p.peek()
	if len(p.groups[last]) == 0 && len(p.alts) == 0 {
		if more && next != '/' {
			p.push("[^/]*")
			return
		}
		p.push(anyPrefix)
		p.bump()
		return
	}
	if prev != '/' && (len(p.alts) == 0 || prev != ',' && prev != '{') {
		p.push("[^/]*")
		return
	}
	suffix := false
	switch {
	case !more, len(p.alts) > 0 && (next == ',' || next == '}'):
		suffix = true
	case next == '/':
		p.bump()
	default:
		p.push("[^/]*")
		return
	}
	before := ""
	if n := len(p.groups[last]); n > 0 {
		before = p.groups[last][n-1]
		p.groups[last] = p.groups[last][:n-1]
	}
	switch {
	case before == anyPrefix, before == anySuffix:
		p.push(before)
	case suffix:
		p.push(anySuffix)
	case before == "": // {**/a}
		p.push(anyPrefix)
	default:
		p.push(anyMiddle)
	}
}

// class reads a character class, behind its bracket.
func (p *wildcardParser) class() (problem string) {
	const unclosed = "unclosed character class; missing ']'"
	var b strings.Builder
	b.WriteByte('[')
	if next, ok := p.peek(); ok && (next == '!' || next == '^') {
		p.bump()
		b.WriteByte('^')
	}
	type span struct{ from, to rune }
	var spans []span
	inRange := false
	to := func(r rune) string {
		last := &spans[len(spans)-1]
		if last.to = r; r < last.from {
			return fmt.Sprintf("invalid range; '%c' > '%c'", last.from, r)
		}
		return ""
	}
	for first := true; ; first = false {
		r, ok := p.bump()
		switch {
		case !ok:
			return unclosed
		case r == ']' && !first:
			if inRange {
				spans = append(spans, span{'-', '-'})
			}
			for _, s := range spans {
				fmt.Fprintf(&b, `\x{%x}-\x{%x}`, s.from, s.to)
			}
			p.push(b.String() + "]")
			return ""
		case r == '-' && !first && !inRange:
			inRange = true
		case inRange:
			if problem := to(r); problem != "" {
				return problem
			}
			inRange = false
		default:
			spans = append(spans, span{r, r})
		}
	}
}
