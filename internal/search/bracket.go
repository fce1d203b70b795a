package search

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
)

// set is a set of characters: pairs of first and last, in their order, without overlap.
type set []rune

func (s set) clean() set {
	pairs := make([][2]rune, 0, len(s)/2)
	for i := 0; i+1 < len(s); i += 2 {
		pairs = append(pairs, [2]rune{s[i], s[i+1]})
	}
	slices.SortFunc(pairs, func(a, b [2]rune) int { return int(a[0] - b[0]) })
	var out set
	for _, p := range pairs {
		if n := len(out); n > 0 && p[0] <= out[n-1]+1 {
			out[n-1] = max(out[n-1], p[1])
			continue
		}
		out = append(out, p[0], p[1])
	}
	return out
}

func (s set) negated() (out set) {
	next := rune(0)
	for c := s.clean(); len(c) > 0; c = c[2:] {
		if c[0] > next {
			out = append(out, next, c[0]-1)
		}
		next = c[1] + 1
	}
	if next <= unicode.MaxRune {
		out = append(out, next, unicode.MaxRune)
	}
	return out
}

func (s set) and(o set) set { return append(s.negated(), o.negated()...).negated() }

// setOf is the set of a class in the syntax of package regexp.
func setOf(class string) set {
	re, err := syntax.Parse("["+class+"]", syntax.Perl)
	if err != nil {
		return nil // the parser has checked it
	}
	switch re.Op {
	case syntax.OpCharClass:
		return set(re.Rune)
	case syntax.OpLiteral:
		return set{re.Rune[0], re.Rune[0]}
	}
	return set{0, unicode.MaxRune}
}

// text is the set for package regexp.
func (s set) text(not bool) string {
	if len(s) == 0 {
		s, not = set{0, unicode.MaxRune}, !not
	}
	var b strings.Builder
	b.WriteByte('[')
	if not {
		b.WriteByte('^')
	}
	for i := 0; i < len(s); i += 2 {
		fmt.Fprintf(&b, `\x{%x}-\x{%x}`, s[i], s[i+1])
	}
	return b.String() + "]"
}

// class is a bracket that is open.
type class struct {
	open, end int // of what opens it
	not       bool
	items     set
	left      set    // of the operator op
	op        string // && -- ~~; "": none yet
}

// combine applies the operator that waits for its right side.
func (c *class) combine() {
	switch c.op {
	case "&&":
		c.items = c.left.and(c.items)
	case "--":
		c.items = c.left.and(c.items.negated())
	case "~~":
		c.items = append(c.left.and(c.items.negated()), c.items.and(c.left.negated())...)
	}
	c.items = c.items.clean()
}

// bracket reads a class with its brackets.
func (p *patternParser) bracket() error {
	var open []*class
	unclosed := func() error { c := open[len(open)-1]; return p.bad(c.open, c.end, "unclosed character class") }
	for {
		if p.eof() {
			return unclosed()
		}
		switch c := p.char(); {
		case c == '[':
			if len(open) > 0 {
				if s, found := p.named(); found {
					top := open[len(open)-1]
					top.items = append(top.items, s...)
					continue
				}
			}
			next, err := p.openClass()
			if err != nil {
				return err
			}
			open = append(open, next)
		case c == ']':
			p.pos++
			top := open[len(open)-1]
			top.combine()
			if open = open[:len(open)-1]; len(open) == 0 {
				if s := top.items; !top.not && len(s) == 2 && s[0] == s[1] {
					p.wants(s[0])
				}
				p.add(top.items.text(top.not))
				return nil
			}
			if top.not {
				top.items = top.items.negated()
			}
			above := open[len(open)-1]
			above.items = append(above.items, top.items...)
		case strings.ContainsRune("&-~", c) && p.next() == c:
			p.pos += 2
			top := open[len(open)-1]
			top.combine()
			top.left, top.items, top.op = top.items, nil, string([]rune{c, c})
		default:
			s, err := p.classRange(unclosed)
			if err != nil {
				return err
			}
			top := open[len(open)-1]
			top.items = append(top.items, s...)
		}
	}
}

// openClass reads [ or [^, and what stands for itself behind it.
func (p *patternParser) openClass() (*class, error) {
	c := &class{open: p.pos}
	eof := func() (*class, error) { return nil, p.bad(c.open, p.pos, "unclosed character class") }
	if !p.bump() {
		return eof()
	}
	if p.char() == '^' {
		c.not = true
		if !p.bump() {
			return eof()
		}
	}
	for p.char() == '-' {
		c.items = append(c.items, '-', '-')
		if !p.bump() {
			return eof()
		}
	}
	if len(c.items) == 0 && p.char() == ']' {
		c.items = append(c.items, ']', ']')
		if !p.bump() {
			return eof()
		}
	}
	c.end = p.pos
	return c, nil
}

// named reads a class such as [:alpha:].
func (p *patternParser) named() (set, bool) {
	rest := string(p.src[p.pos:])
	end := strings.Index(rest, ":]")
	if !strings.HasPrefix(rest, "[:") || end < 2 {
		return nil, false
	}
	name, not := strings.CutPrefix(rest[2:end], "^")
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz") != "" {
		return nil, false
	}
	if _, err := syntax.Parse("[[:"+name+":]]", syntax.Perl); err != nil {
		return nil, false
	}
	p.pos += end + 2
	s := setOf("[:" + name + ":]")
	if not {
		s = s.negated()
	}
	return s, true
}

// classRange reads a character of a class, a range, or a class such as \d.
func (p *patternParser) classRange(unclosed func() error) (set, error) {
	start := p.pos
	first, s, err := p.classItem()
	if err != nil {
		return nil, err
	}
	middle := p.pos
	if p.eof() {
		return nil, unclosed()
	}
	if p.char() != '-' || p.next() == ']' || p.next() == '-' {
		return s, nil
	}
	if !p.bump() {
		return nil, unclosed()
	}
	second := p.pos
	last, _, err := p.classItem()
	switch {
	case err != nil:
		return nil, err
	case first < 0:
		return nil, p.bad(start, middle, "invalid range boundary, must be a literal")
	case last < 0:
		return nil, p.bad(second, p.pos, "invalid range boundary, must be a literal")
	case first > last:
		return nil, p.bad(start, p.pos, "invalid character class range, the start must be <= the end")
	}
	return set{first, last}, nil
}

// classItem reads a character or a class such as \d; of a class, the character is -1.
func (p *patternParser) classItem() (rune, set, error) {
	c, start := p.char(), p.pos
	if c != '\\' {
		p.pos++
		return c, set{c, c}, nil
	}
	e, err := p.escape()
	switch {
	case err != nil:
		return 0, nil, err
	case e.literal:
		return e.char, set{e.char, e.char}, nil
	case e.class == "":
		return 0, nil, p.bad(start, p.pos, "invalid escape sequence found in character class")
	}
	s := setOf(e.class)
	if e.not {
		s = s.negated()
	}
	return -1, s, nil
}
