package search

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// Pattern is a regular expression in ripgrep's syntax.
type Pattern struct {
	re    *regexp.Regexp
	steps int  // of its program, which a byte of text can take
	multi bool // matches can span lines
	never bool // it wants a newline, which no line has
}

const (
	maxPattern = 64 << 10 // characters of a pattern
	maxProgram = 20000    // steps of what it is compiled to: a large one takes as long for each byte
)

// SyntaxError is a pattern that cannot be read. Its text is ripgrep's.
type SyntaxError struct {
	Pattern    string // as ripgrep wraps it
	Start, End int    // of what is wrong, in characters
	Also       int    // the place of the first use of a name that is used twice; 0 without one
	Problem    string
}

func (e *SyntaxError) Error() string {
	marks := strings.Repeat(" ", e.Start) + strings.Repeat("^", max(1, e.End-e.Start))
	if e.Also > 0 {
		marks = strings.Repeat(" ", e.Also) + strings.Repeat("^", e.End-e.Start) + marks[e.Also+e.End-e.Start:]
	}
	text := "regex parse error:\n    " + e.Pattern + "\n    " + marks + "\nerror: " + e.Problem
	if e.Problem == lookaround || e.Problem == backreference {
		text += "\n\nConsider enabling PCRE2 with the --pcre2 flag, which can handle backreferences\nand look-around."
	}
	return text
}

const (
	tooLarge      = "the pattern is too large"
	lookaround    = "look-around, including look-ahead and look-behind, is not supported"
	backreference = "backreferences are not supported"
)

// Compile compiles a pattern. fold takes upper and lower case as the same. multi lets matches
// span lines, and . match a newline.
func Compile(pattern string, fold, multi bool) (*Pattern, error) {
	if len(pattern) > maxPattern {
		return nil, &SyntaxError{Pattern: strings.ToValidUTF8(pattern[:100], "") + "...", Problem: tooLarge}
	}
	p := &patternParser{src: []rune("(?:" + pattern + ")"), multi: multi, names: map[string]int{}}
	text, err := p.parse()
	if err != nil {
		return nil, err
	}
	flags := "(?m"
	if fold {
		flags += "i"
	}
	if multi {
		flags += "s"
	}
	bad := func(problem string) error {
		return &SyntaxError{Pattern: string(p.src), End: len(p.src), Problem: problem}
	}
	tree, err := syntax.Parse(flags+")"+text, syntax.Perl)
	if err != nil {
		return nil, bad(err.Error()) // too large
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil || len(program.Inst) > maxProgram {
		return nil, bad(tooLarge)
	}
	re, err := regexp.Compile(flags + ")" + text)
	if err != nil {
		return nil, bad(err.Error())
	}
	return &Pattern{re: re, steps: len(program.Inst), multi: multi, never: p.newline && !multi}, nil
}

// patternParser reads a pattern as the Rust crate regex-syntax does, so that the same patterns
// are errors, and writes it for package regexp.
type patternParser struct {
	src     []rune
	pos     int
	multi   bool
	newline bool // a newline is wanted
	verbose bool // the flag x is set
	stack   []frame
	names   map[string]int // of groups: where they stand
	written int            // bytes of the counted repetitions
}

// frame is a group that is open, or the whole.
type frame struct {
	open    int    // of its parenthesis
	prefix  string // of the group that is written
	verbose bool   // as before the group
	done    []string
	atoms   []atom
}

// atom is what an operator such as * can stand behind.
type atom struct {
	text  string
	flags bool // it sets flags, and matches nothing
}

func (p *patternParser) eof() bool { return p.pos >= len(p.src) }

func (p *patternParser) char() rune {
	if p.eof() {
		return 0
	}
	return p.src[p.pos]
}

func (p *patternParser) next() rune {
	if p.pos+1 >= len(p.src) {
		return 0
	}
	return p.src[p.pos+1]
}

// bump skips a character. It reports whether there is one more.
func (p *patternParser) bump() bool {
	p.pos++
	return !p.eof()
}

func (p *patternParser) follows(s string) bool {
	if !strings.HasPrefix(string(p.src[p.pos:min(len(p.src), p.pos+len(s))]), s) {
		return false
	}
	p.pos += len(s)
	return true
}

func (p *patternParser) bad(start, end int, problem string) error {
	return &SyntaxError{Pattern: string(p.src), Start: start, End: end, Problem: problem}
}

func (p *patternParser) top() *frame { return &p.stack[len(p.stack)-1] }

func (p *patternParser) add(text string) { f := p.top(); f.atoms = append(f.atoms, atom{text: text}) }

// alternative ends what stands before a | or the end of a group.
func (f *frame) alternative() {
	var b strings.Builder
	for _, a := range f.atoms {
		b.WriteString(a.text)
	}
	f.done, f.atoms = append(f.done, b.String()), nil
}

func (p *patternParser) parse() (string, error) {
	p.stack = []frame{{}}
	for {
		p.space()
		if p.eof() {
			break
		}
		var err error
		switch p.char() {
		case '(':
			err = p.group()
		case ')':
			err = p.closeGroup()
		case '|':
			p.top().alternative()
			p.pos++
		case '[':
			err = p.bracket()
		case '?', '*', '+':
			err = p.repeat()
		case '{':
			err = p.count()
		default:
			err = p.primitive()
		}
		if err != nil {
			return "", err
		}
	}
	if len(p.stack) > 1 {
		return "", p.bad(p.top().open, p.top().open+1, "unclosed group")
	}
	p.top().alternative()
	return strings.Join(p.top().done, "|"), nil
}

// space skips what the flag x makes a comment.
func (p *patternParser) space() {
	for p.verbose && !p.eof() {
		switch c := p.char(); {
		case strings.ContainsRune(" \t\n\r\v\f", c):
			p.pos++
		case c == '#':
			for !p.eof() && p.char() != '\n' {
				p.pos++
			}
		default:
			return
		}
	}
}

func (p *patternParser) group() error {
	open := p.pos
	p.pos++
	p.space()
	inner := p.pos
	if slices.ContainsFunc([]string{"?=", "?!", "?<=", "?<!"}, p.follows) {
		return p.bad(open, p.pos, lookaround)
	}
	f := frame{open: open, prefix: "(?:", verbose: p.verbose}
	switch {
	case p.follows("?P<"), p.follows("?<"):
		if err := p.name(); err != nil {
			return err
		}
	case p.follows("?"):
		if p.eof() {
			return p.bad(open, open+1, "unclosed group")
		}
		flags, err := p.flags()
		if err != nil {
			return err
		}
		ends := p.char() == ')'
		if ends && p.pos == inner+1 {
			return p.bad(inner, inner, "repetition operator missing expression")
		}
		p.pos++
		if ends {
			if flags != "" {
				flags = "(?" + flags + ")"
			}
			t := p.top()
			t.atoms = append(t.atoms, atom{flags, true})
			return nil
		}
		f.prefix = "(?" + flags + ":"
	}
	p.stack = append(p.stack, f)
	return nil
}

// name reads the name of a group, behind its <. No one asks for it.
func (p *patternParser) name() error {
	start := p.pos
	for ; ; p.pos++ {
		switch c := p.char(); {
		case p.eof():
			return p.bad(p.pos, p.pos, "unclosed capture group name")
		case c == '>':
			name := string(p.src[start:p.pos])
			if name == "" {
				return p.bad(start, start, "empty capture group name")
			}
			if before, twice := p.names[name]; twice {
				return &SyntaxError{Pattern: string(p.src), Start: start, End: p.pos, Also: before, Problem: "duplicate capture group name"}
			}
			p.names[name] = start
			p.pos++
			return nil
		case !nameChar(c, p.pos == start):
			return p.bad(p.pos, p.pos+1, "invalid capture group character")
		}
	}
}

// flags reads flags such as i-s, up to their : or ), as package regexp has them.
func (p *patternParser) flags() (string, error) {
	var on, off strings.Builder
	negated, dangling := false, -1
	seen := ""
	for p.char() != ':' && p.char() != ')' {
		c := p.char()
		switch {
		case c == '-' && negated:
			return "", p.bad(p.pos, p.pos+1, "flag negation operator repeated")
		case c == '-':
			negated, dangling = true, p.pos
		case !strings.ContainsRune("imsUuRx", c):
			return "", p.bad(p.pos, p.pos+1, "unrecognized flag")
		case strings.ContainsRune(seen, c):
			return "", p.bad(p.pos, p.pos+1, "duplicate flag")
		default:
			dangling = -1
			seen += string(c)
			if c == 'x' {
				p.verbose = !negated
			}
			if to := map[bool]*strings.Builder{false: &on, true: &off}[negated]; strings.ContainsRune("imsU", c) {
				to.WriteRune(c)
			}
		}
		if !p.bump() {
			return "", p.bad(p.pos, p.pos, "expected flag but got end of regex")
		}
	}
	if dangling >= 0 {
		return "", p.bad(dangling, dangling+1, "dangling flag negation operator")
	}
	if off.Len() > 0 {
		on.WriteString("-" + off.String())
	}
	return on.String(), nil
}

func (p *patternParser) closeGroup() error {
	if len(p.stack) == 1 {
		return p.bad(p.pos, p.pos+1, "unopened group")
	}
	p.pos++
	f := p.top()
	f.alternative()
	text := f.prefix + strings.Join(f.done, "|") + ")"
	p.verbose = f.verbose
	p.stack = p.stack[:len(p.stack)-1]
	p.add(text)
	return nil
}

// operand takes the atom before an operator away.
func (p *patternParser) operand() (string, error) {
	f := p.top()
	n := len(f.atoms) - 1
	if n < 0 || f.atoms[n].flags {
		return "", p.bad(p.pos, p.pos, "repetition operator missing expression")
	}
	text := f.atoms[n].text
	f.atoms = f.atoms[:n]
	return "(?:" + text + ")", nil
}

// lazy reads the ? behind an operator.
func (p *patternParser) lazy() string {
	p.space()
	if p.char() == '?' {
		p.pos++
		return "?"
	}
	return ""
}

func (p *patternParser) repeat() error {
	of, err := p.operand()
	if err != nil {
		return err
	}
	op := string(p.char())
	p.pos++
	p.add(of + op + p.lazy())
	return nil
}
