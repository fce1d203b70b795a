package search

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// Line is a line of a file that is shown.
type Line struct {
	Number  int    // from 1
	Text    []byte // without its end; valid until the call returns
	Context bool   // it is near a match, and does not match
	Gap     bool   // lines are left out before it
}

// Scan says how a file is searched.
type Scan struct {
	Before, After int // lines of context
	// Parts shows the parts that match, and not their lines.
	Parts bool
	// Named says that the file was named, and not found: one with NUL bytes is searched too.
	Named bool
	// First ends the search with the first match.
	First bool
	// Line is called for each line; if it is nil, they are only counted. false ends the search.
	Line func(Line) bool
}

// Found is what a search of a file has found.
type Found struct {
	Matches int // lines, or matches if they can span lines
	// NUL is the place of the first NUL byte that the search met; -1: none. The search of a
	// file that is not named ends there.
	NUL int64
}

const (
	chunkSize = 64 << 10 // of a file, as it is read
	maxLine   = 32 << 20 // of a line: a longer one is searched in parts
	maxWhole  = 64 << 20 // of a file that is searched as a whole, for matches over lines and UTF-16
	maxTries  = 1000     // matches over lines before lines are looked at one by one
	maxHeld   = 16 << 20 // bytes of lines that may be context of a match
	maxWork   = 1 << 30  // steps of a search that nothing ends before it is done
)

// ErrTooLarge says that a file is larger than what is searched as a whole, for that pattern.
var ErrTooLarge = errors.New("the file is too large for matches that span lines")

// Search searches a file from its beginning.
func (p *Pattern) Search(ctx context.Context, file io.Reader, s Scan) (Found, error) {
	f := &finder{Scan: s, p: p, ctx: ctx, number: 1, found: Found{NUL: -1}}
	if p.never {
		return f.found, nil
	}
	head := make([]byte, chunkSize)
	n, err := io.ReadFull(file, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return f.found, err
	}
	head = head[:n]
	wide := bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff"))
	if !wide && !p.multi {
		return f.found, f.stream(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), file, n < chunkSize)
	}
	rest, err := io.ReadAll(io.LimitReader(file, maxWhole-int64(n)+1))
	if err != nil {
		return f.found, err
	}
	whole := slices.Concat(head, rest)
	switch {
	case len(whole) > maxWhole, p.multi && p.steps*len(whole) > 4*maxWork:
		return f.found, ErrTooLarge
	case wide:
		whole = fromUTF16(whole)
	default:
		whole = bytes.TrimPrefix(whole, []byte("\xef\xbb\xbf"))
	}
	if !p.multi {
		return f.found, f.stream(whole, nil, true)
	}
	return f.found, f.whole(whole)
}

// fromUTF16 is text as UTF-8, without its byte order mark.
func fromUTF16(b []byte) []byte {
	big := b[0] == 0xfe
	units := make([]uint16, 0, len(b)/2)
	for i := 2; i+1 < len(b); i += 2 {
		lo, hi := b[i], b[i+1]
		if big {
			lo, hi = hi, lo
		}
		units = append(units, uint16(lo)|uint16(hi)<<8)
	}
	var out []byte
	for _, r := range utf16.Decode(units) {
		out = utf8.AppendRune(out, r)
	}
	return out
}

// finder searches one file.
type finder struct {
	Scan
	p   *Pattern
	ctx context.Context //nolint:containedctx // of this search

	number int      // of the next line
	read   int64    // bytes of the chunks before
	shown  int      // the number of the last line that was shown
	after  int      // lines of context that are still to be shown
	held   [][]byte // lines that may be context of a match
	size   int      // bytes of them
	tries  int
	found  Found
}

// stream searches a file in chunks that end with a line.
func (f *finder) stream(buf []byte, file io.Reader, last bool) error {
	fresh := buf // what was read last, in which a NUL byte is looked for
	for {
		if err := f.ctx.Err(); err != nil {
			return err
		}
		if i := bytes.IndexByte(fresh, 0); i >= 0 && f.found.NUL < 0 {
			at := f.read + int64(len(buf)-len(fresh)+i)
			if !f.Named {
				f.found.NUL = at
				return nil
			}
			if at < chunkSize {
				f.found.NUL = at
			}
		}
		end := len(buf)
		if !last && end < maxLine {
			end = bytes.LastIndexByte(buf, '\n') + 1
		}
		if !f.lines(buf[:end]) {
			return nil
		}
		if last {
			return f.ctx.Err() // it may have ended the search of this chunk
		}
		f.read += int64(end)
		rest := len(buf) - end
		next := make([]byte, rest+max(chunkSize, rest)) // longer each time, for a long line
		copy(next, buf[end:])
		n, err := io.ReadFull(file, next[rest:])
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			last = true
		case err != nil:
			return err
		}
		buf, fresh = next[:rest+n], next[rest:rest+n]
	}
}

// lines searches lines, and returns false when the search is over.
func (f *finder) lines(buf []byte) bool {
	for pos := 0; pos < len(buf); {
		start, end := f.next(buf, pos)
		if !f.gap(buf[pos:start]) {
			return false
		}
		if start == len(buf) {
			return true
		}
		if !f.match(buf[start:end], f.read+int64(start)) {
			return false
		}
		pos = min(end+1, len(buf))
	}
	return true
}

// next is the next line with a match; at the end of buf if no line matches.
func (f *finder) next(buf []byte, pos int) (start, end int) {
	for pos < len(buf) {
		if f.tries > maxTries {
			end = lineEnd(buf, pos)
			if f.find(buf[pos:end]) != nil {
				return pos, end
			}
			pos = end + 1
			continue
		}
		at := f.find(buf[pos:])
		if at == nil || pos+at[0] >= len(buf) {
			break
		}
		start = bytes.LastIndexByte(buf[:pos+at[0]], '\n') + 1
		end = lineEnd(buf, start)
		if pos+at[1] <= end || f.find(buf[start:end]) != nil {
			return start, end
		}
		f.tries++
		pos = end + 1
	}
	return len(buf), len(buf)
}

// find is the first match; nil also if ctx ends while a large program looks for it.
func (f *finder) find(buf []byte) []int {
	if f.p.steps*len(buf) <= maxWork {
		return f.p.re.FindIndex(buf)
	}
	return f.p.re.FindReaderIndex(&runes{ctx: f.ctx, rest: buf})
}

// runes reads text until ctx ends.
type runes struct {
	ctx  context.Context //nolint:containedctx // of the search
	rest []byte
	n    int
}

// ReadRune implements [io.RuneReader].
func (r *runes) ReadRune() (c rune, size int, err error) {
	if r.n++; len(r.rest) == 0 || r.n%1024 == 0 && r.ctx.Err() != nil {
		return 0, 0, io.EOF
	}
	c, size = utf8.DecodeRune(r.rest)
	r.rest = r.rest[size:]
	return c, size, nil
}

func lineEnd(buf []byte, start int) int {
	if i := bytes.IndexByte(buf[start:], '\n'); i >= 0 {
		return start + i
	}
	return len(buf)
}

// perLine is what a line takes that is held, beside its text.
const perLine = 32

// gap takes lines without a match: some are context.
func (f *finder) gap(buf []byte) bool {
	for len(buf) > 0 && f.after > 0 {
		end := lineEnd(buf, 0)
		f.after--
		if !f.show(buf[:end], true) {
			return false
		}
		buf = buf[min(end+1, len(buf)):]
	}
	n := bytes.Count(buf, []byte{'\n'})
	if len(buf) > 0 && buf[len(buf)-1] != '\n' {
		n++
	}
	f.number += n
	if f.Before == 0 || f.Line == nil {
		return true
	}
	var last [][]byte // from the end
	for size := 0; len(buf) > 0 && len(last) < f.Before && size <= maxHeld; {
		buf = bytes.TrimSuffix(buf, []byte{'\n'})
		start := bytes.LastIndexByte(buf, '\n') + 1
		last = append(last, bytes.Clone(buf[start:]))
		size += perLine + len(buf) - start
		buf = buf[:start]
	}
	for _, l := range slices.Backward(last) {
		f.held = append(f.held, l)
		f.size += perLine + len(l)
	}
	for len(f.held) > f.Before || f.size > maxHeld {
		f.size -= perLine + len(f.held[0])
		f.held = f.held[1:]
	}
	return true
}

// match takes a line with a match, which begins at that place of the file.
func (f *finder) match(line []byte, at int64) bool {
	f.found.Matches++
	if f.Line == nil {
		f.number++
		return !f.First
	}
	f.number -= len(f.held)
	for _, l := range f.held {
		if !f.show(l, true) {
			return false
		}
	}
	f.held, f.size, f.after = nil, 0, f.After
	if i := bytes.IndexByte(line, 0); i >= 0 {
		if f.found.NUL < 0 {
			f.found.NUL = at + int64(i)
		}
		f.number++
		return true // it is not shown
	}
	if !f.Parts {
		return f.show(line, false)
	}
	for _, m := range f.p.re.FindAllIndex(line, maxMatches) {
		if !f.show(line[m[0]:m[1]], false) {
			return false
		}
		f.number-- // the same line
	}
	f.number++
	return true
}

// show shows the line with the next number.
func (f *finder) show(text []byte, context bool) bool {
	l := Line{Number: f.number, Text: text, Context: context, Gap: f.shown > 0 && f.number > f.shown+1}
	f.shown = f.number
	f.number++
	return f.Line == nil || f.Line(l)
}

// whole searches text in which matches can span lines.
func (f *finder) whole(buf []byte) error {
	if i := bytes.IndexByte(buf, 0); i >= 0 {
		if !f.Named {
			f.found.NUL = int64(i)
			return nil
		}
		if i < chunkSize {
			f.found.NUL = int64(i)
		}
	}
	pos := 0 // of the lines that are not shown yet
	all := f.p.re.FindAllIndex(buf, maxMatches)
	if n := len(all); n > 0 && all[n-1][0] == len(buf) && (len(buf) == 0 || buf[len(buf)-1] == '\n') {
		all = all[:n-1] // at the end there is no line
	}
	for len(all) > 0 && f.ctx.Err() == nil {
		n, start, end := block(buf, all)
		f.found.Matches += n
		if f.First || !f.gap(buf[pos:start]) || !f.matched(buf, start, end, all[:n]) {
			return nil
		}
		pos, all = end, all[n:]
	}
	f.gap(buf[pos:])
	return f.ctx.Err()
}

// maxMatches limits the matches in a file that can span lines.
const maxMatches = 1 << 20

// block is how many of the next matches have lines that touch, and where those lines are.
func block(buf []byte, matches [][]int) (n, start, end int) {
	for i, m := range matches {
		from := bytes.LastIndexByte(buf[:m[0]], '\n') + 1
		if i == 0 {
			start = from
		} else if from > end {
			return i, start, end
		}
		last := m[1]
		if last > m[0] && buf[last-1] == '\n' {
			last-- // the end of a line belongs to it
		}
		end = max(end, min(lineEnd(buf, last)+1, len(buf)))
	}
	return len(matches), start, end
}

// matched shows the lines of a block of matches, or the matches.
func (f *finder) matched(buf []byte, start, end int, matches [][]int) bool {
	if f.Line == nil {
		f.number += bytes.Count(buf[start:end], []byte{'\n'})
		return true
	}
	f.number -= len(f.held)
	for _, l := range f.held {
		if !f.show(l, true) {
			return false
		}
	}
	f.held, f.size, f.after = nil, 0, f.After
	if !f.Parts {
		return f.each(buf[start:end])
	}
	first := f.number
	for _, m := range matches {
		f.number = first + bytes.Count(buf[start:m[0]], []byte{'\n'})
		if !f.each(buf[m[0]:m[1]]) {
			return false
		}
	}
	f.number = first + bytes.Count(buf[start:end], []byte{'\n'})
	return true
}

// each shows each line of a text that matches.
func (f *finder) each(text []byte) bool {
	for {
		i := bytes.IndexByte(text, '\n')
		if i < 0 || i == len(text)-1 {
			return f.show(bytes.TrimSuffix(text, []byte{'\n'}), false)
		}
		if !f.show(text[:i], false) {
			return false
		}
		text = text[i+1:]
	}
}
