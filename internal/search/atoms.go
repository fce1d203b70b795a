package search

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

func nameChar(c rune, first bool) bool {
	return c == '_' || unicode.IsLetter(c) || !first && (unicode.IsNumber(c) || strings.ContainsRune(".[]", c))
}

// maxCount is the largest count that package regexp takes.
const maxCount = 1000

// count reads a counted repetition such as {2,3}.
func (p *patternParser) count() error {
	const unclosed, invalid = "unclosed counted repetition", "repetition quantifier expects a valid decimal"
	start := p.pos
	of, err := p.operand()
	if err != nil {
		return err
	}
	if !p.bump() {
		return p.bad(start, p.pos, unclosed)
	}
	from, fromErr := p.decimal(invalid)
	if p.eof() {
		return p.bad(start, p.pos, unclosed)
	}
	to := from
	if p.char() == ',' {
		if !p.bump() {
			return p.bad(start, p.pos, unclosed)
		}
		to = -1
		if p.char() != '}' {
			if fromErr != nil {
				return fromErr
			}
			if to, err = p.decimal(invalid); err != nil {
				return err
			}
		}
	}
	if fromErr != nil {
		return fromErr
	}
	if p.char() != '}' {
		return p.bad(start, p.pos, unclosed)
	}
	p.pos++
	lazy := p.lazy()
	if to >= 0 && to < from {
		return p.bad(start, p.pos, "invalid repetition count range, the start must be <= the end")
	}
	text := repeated(of, from, to)
	if p.written += len(text); p.written > maxWritten {
		return p.bad(0, len(p.src), tooLarge)
	}
	p.add(text + lazy)
	return nil
}

// repeated is a counted repetition, in parts that package regexp takes. to is -1 without a limit.
func repeated(of string, from, to int) string {
	var b strings.Builder
	for ; from > maxCount && b.Len() <= maxWritten; from -= maxCount {
		fmt.Fprintf(&b, "%s{%d}", of, maxCount)
		if to > 0 {
			to -= maxCount
		}
	}
	for ; to > maxCount && b.Len() <= maxWritten; to -= maxCount {
		fmt.Fprintf(&b, "%s{%d,%d}", of, from, maxCount)
		from = 0
	}
	switch {
	case to < 0:
		fmt.Fprintf(&b, "%s{%d,}", of, from)
	default:
		fmt.Fprintf(&b, "%s{%d,%d}", of, from, to)
	}
	return "(?:" + b.String() + ")"
}

// maxWritten limits what large counts become, in bytes.
const maxWritten = 1 << 20

func (p *patternParser) decimal(problem string) (int, error) {
	skip := func() {
		for !p.eof() && unicode.IsSpace(p.char()) {
			p.pos++
		}
	}
	skip()
	start := p.pos
	for !p.eof() && p.char() >= '0' && p.char() <= '9' {
		p.pos++
	}
	digits, end := string(p.src[start:p.pos]), p.pos
	skip()
	if digits == "" {
		return 0, p.bad(start, end, problem)
	}
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil {
		return 0, p.bad(start, end, "decimal literal invalid")
	}
	return int(min(n, 1<<24)), nil // more is too large in any case
}

// Classes of characters, with Unicode's as ripgrep has them.
const (
	digitClass = `\p{Nd}`
	spaceClass = `\t\n\v\f\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}`
	wordClass  = `\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{200c}\x{200d}`
)

func (p *patternParser) primitive() error {
	c := p.char()
	switch c {
	case '.', '^', '$':
		p.pos++
		p.add(string(c))
		return nil
	case '\\':
		e, err := p.escape()
		if err != nil {
			return err
		}
		if e.literal {
			p.wants(e.char)
		}
		p.add(e.text)
		return nil
	}
	p.pos++
	p.wants(c)
	p.add(regexp.QuoteMeta(string(c)))
	return nil
}

// wants notes that the pattern has this character.
func (p *patternParser) wants(c rune) { p.newline = p.newline || c == '\n' }

// escaped is what a backslash begins.
type escaped struct {
	text    string // for package regexp
	class   string // inside of brackets, if it is a class
	not     bool   // the class is negated
	literal bool   // it is one character
	char    rune
}

// escape reads an escape sequence.
func (p *patternParser) escape() (escaped, error) {
	start := p.pos
	if !p.bump() {
		return escaped{}, p.bad(start, p.pos, "incomplete escape sequence, reached end of pattern prematurely")
	}
	literal := func(c rune) escaped {
		return escaped{text: regexp.QuoteMeta(string(c)), literal: true, char: c}
	}
	class := func(c string, not bool) escaped {
		if not {
			return escaped{text: "[^" + c + "]", class: c, not: true}
		}
		return escaped{text: "[" + c + "]", class: c}
	}
	c := p.char()
	switch c {
	case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return escaped{}, p.bad(start, p.pos+1, backreference)
	case 'x', 'u', 'U':
		c, err := p.hex(map[rune]int{'x': 2, 'u': 4, 'U': 8}[c])
		return literal(c), err
	case 'p', 'P':
		name, not, err := p.property(start)
		return class(name, not), err
	}
	p.pos++
	switch c {
	case 'd', 'D':
		return class(digitClass, c == 'D'), nil
	case 's', 'S':
		return class(spaceClass, c == 'S'), nil
	case 'w', 'W':
		return class(wordClass, c == 'W'), nil
	case 'a':
		return literal('\a'), nil
	case 'f':
		return literal('\f'), nil
	case 't':
		return literal('\t'), nil
	case 'n':
		return literal('\n'), nil
	case 'r':
		return literal('\r'), nil
	case 'v':
		return literal('\v'), nil
	case 'A', 'z':
		if p.multi {
			return escaped{text: `\` + string(c)}, nil
		}
		return escaped{text: map[rune]string{'A': "(?m:^)", 'z': "(?m:$)"}[c]}, nil // each line is a text
	case 'b':
		for _, kind := range []string{"{start}", "{end}", "{start-half}", "{end-half}"} {
			if p.follows(kind) {
				break
			}
		}
		return escaped{text: `\b`}, nil
	case '<', '>':
		return escaped{text: `\b`}, nil
	case 'B':
		return escaped{text: `\B`}, nil
	}
	if c > unicode.MaxASCII || unicode.IsLetter(c) || unicode.IsDigit(c) {
		return escaped{}, p.bad(start, p.pos, "unrecognized escape sequence")
	}
	return literal(c), nil
}

// hex reads \x7F, \u00e9, \U0001F600 and \x{e9}, from their letter.
func (p *patternParser) hex(digits int) (rune, error) {
	const eof, invalid, scalar = "incomplete escape sequence, reached end of pattern prematurely", "invalid hexadecimal digit", "hexadecimal literal is not a Unicode scalar value"
	if !p.bump() {
		return 0, p.bad(p.pos, p.pos, eof)
	}
	value := func(start, end int) (rune, error) {
		n, err := strconv.ParseUint(string(p.src[start:end]), 16, 32)
		if err != nil || n > unicode.MaxRune || n >= 0xd800 && n < 0xe000 {
			return 0, p.bad(start, end, scalar)
		}
		return rune(n), nil
	}
	isHex := func(c rune) bool { return strings.ContainsRune("0123456789abcdefABCDEF", c) && c != 0 }
	if p.char() != '{' {
		start := p.pos
		for range digits {
			switch {
			case p.eof():
				return 0, p.bad(p.pos, p.pos, eof)
			case !isHex(p.char()):
				return 0, p.bad(p.pos, p.pos+1, invalid)
			}
			p.pos++
		}
		return value(start, p.pos)
	}
	brace := p.pos
	for p.bump() && p.char() != '}' {
		if !isHex(p.char()) {
			return 0, p.bad(p.pos, p.pos+1, invalid)
		}
	}
	if p.eof() {
		return 0, p.bad(brace, p.pos, eof)
	}
	end := p.pos
	p.pos++
	if end == brace+1 {
		return 0, p.bad(brace, p.pos, "hexadecimal literal empty")
	}
	return value(brace+1, end)
}

// property reads \pL and \p{Greek}, from their letter.
func (p *patternParser) property(start int) (class string, not bool, err error) {
	not = p.char() == 'P'
	if !p.bump() {
		return "", false, p.bad(start, p.pos, "incomplete escape sequence, reached end of pattern prematurely")
	}
	name := string(p.char())
	if p.char() == '{' {
		from := p.pos + 1
		for p.bump() && p.char() != '}' {
			continue
		}
		if p.eof() {
			return "", false, p.bad(from, p.pos, "incomplete escape sequence, reached end of pattern prematurely")
		}
		name = string(p.src[from:p.pos])
	}
	p.pos++
	if rest, found := strings.CutPrefix(name, "^"); found {
		name, not = rest, !not
	}
	if i := strings.LastIndexAny(name, "=:"); i >= 0 {
		name = name[i+1:]
	}
	switch strings.ToLower(name) {
	case "alphabetic", "alpha":
		return `\p{L}\p{Nl}`, not, nil
	case "uppercase", "upper":
		return `\p{Lu}`, not, nil
	case "lowercase", "lower":
		return `\p{Ll}`, not, nil
	case "white_space", "whitespace", "space":
		return spaceClass, not, nil
	}
	if _, err := regexp.Compile(`\p{` + name + `}`); err != nil {
		return "", false, p.bad(start, p.pos, "Unicode property not found")
	}
	return `\p{` + name + `}`, not, nil
}
