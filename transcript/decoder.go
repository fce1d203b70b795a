package transcript

import (
	"bytes"
	"errors"
	"io"
	"iter"

	"github.com/agent-troupe/troupe/base/jsonscan"
)

// defaultMaxLine is the longest line that a [Decoder] holds unless MaxLine says
// otherwise, in bytes. Claude Code keeps large tool output in other files: its lines
// seldom exceed a megabyte, apart from images.
const defaultMaxLine = 64 << 20

// Damage says why a line is not a JSON object; "" for a JSON object.
type Damage string

// The kinds of damage.
const (
	// DamageTorn: the last line has no newline and is not a whole object. The writer was
	// killed, or is still writing. Claude Code ignores such a line and begins its next
	// append with a newline.
	DamageTorn Damage = "torn"
	// DamageGarbage: the line is not valid JSON, or not an object.
	DamageGarbage Damage = "garbage"
	// DamageTooLong: the line is longer than MaxLine. Raw holds its first bytes.
	DamageTooLong Damage = "too long"
	// DamageBlank: the line is empty. This is harmless.
	DamageBlank Damage = "blank"
)

// Decoder reads the lines of a session file one by one. Its memory is bounded by the
// longest line, or MaxLine if that is less. It is not safe for concurrent use.
type Decoder struct {
	// MaxLine is the longest line that is held, in bytes. A longer one comes with
	// DamageTooLong. 0: defaultMaxLine. Set it before the first call of Next.
	MaxLine int

	r      io.Reader
	buf    []byte
	lo, hi int   // the unread part of buf
	at     int64 // the offset of buf[lo] in the stream
	number int
	err    error // of the reader, once it has one
	line   Line
}

// NewDecoder returns a decoder for the lines that r reads.
func NewDecoder(r io.Reader) *Decoder { return &Decoder{r: r} }

// Next returns the next line, or io.EOF after the last one. The line and its bytes are
// valid until the next call; [Line.Clone] copies them. Damaged lines are lines too, with
// Damage set. An error that is not io.EOF is the reader's.
func (d *Decoder) Next() (*Line, error) {
	at := d.at
	raw, ended, tooLong, err := d.read()
	if err != nil {
		return nil, err
	}
	d.number++
	d.line = Line{Offset: at, Number: d.number}
	l := &d.line
	if l.Number == 1 && bytes.HasPrefix(raw, []byte(bom)) {
		raw, l.Offset, l.BOM = raw[len(bom):], at+int64(len(bom)), true
	}
	l.Raw = bytes.TrimSuffix(raw, []byte{'\r'})
	switch {
	case tooLong:
		l.Damage = DamageTooLong
	case jsonscan.Space(l.Raw, 0) == len(l.Raw):
		l.Damage = DamageBlank
	case l.parse():
	case ended:
		l.Damage = DamageGarbage
	default:
		l.Damage = DamageTorn
	}
	return l, nil
}

// bom is the byte order mark that some editors put at the start of a file.
const bom = "\ufeff"

// firstBuffer is the size of the buffer until a line is longer.
const firstBuffer = 128 << 10

// keptOfTooLong is how much of a line that is too long is kept.
const keptOfTooLong = 4096

// read returns the next line without its newline, and whether it had one.
func (d *Decoder) read() (raw []byte, ended, tooLong bool, err error) {
	limit := d.MaxLine
	if limit <= 0 {
		limit = defaultMaxLine
	}
	searched := d.lo
	for {
		if i := bytes.IndexByte(d.buf[searched:d.hi], '\n'); i >= 0 {
			raw = d.buf[d.lo : searched+i]
			d.at += int64(len(raw)) + 1
			d.lo = searched + i + 1
			if len(raw) > limit {
				return raw[:min(len(raw), keptOfTooLong)], true, true, nil
			}
			return raw, true, false, nil
		}
		if d.err != nil {
			if !errors.Is(d.err, io.EOF) || d.lo == d.hi {
				return nil, false, false, d.err
			}
			raw = d.buf[d.lo:d.hi]
			d.at += int64(len(raw))
			d.lo = d.hi
			if len(raw) > limit {
				return raw[:min(len(raw), keptOfTooLong)], false, true, nil
			}
			return raw, false, false, nil
		}
		if d.hi-d.lo > limit {
			raw, ended, err = d.skipLine()
			return raw, ended, true, err
		}
		searched = d.fill()
	}
}

// fill reads more into the buffer and returns where what is new begins.
func (d *Decoder) fill() int {
	if d.lo > 0 {
		copy(d.buf, d.buf[d.lo:d.hi])
		d.hi -= d.lo
		d.lo = 0
	}
	if d.hi == len(d.buf) {
		bigger := make([]byte, max(firstBuffer, 2*len(d.buf)))
		copy(bigger, d.buf[:d.hi])
		d.buf = bigger
	}
	searched := d.hi
	for range 100 { // as bufio: a reader that returns nothing without an error is broken
		n, err := d.r.Read(d.buf[d.hi:])
		d.hi += n
		d.err = err
		if n > 0 || err != nil {
			return searched
		}
	}
	d.err = io.ErrNoProgress
	return searched
}

// skipLine drops the rest of a line whose start fills the buffer, and returns that start.
func (d *Decoder) skipLine() (head []byte, ended bool, err error) {
	head = bytes.Clone(d.buf[d.lo:min(d.hi, d.lo+keptOfTooLong)])
	for {
		if i := bytes.IndexByte(d.buf[d.lo:d.hi], '\n'); i >= 0 {
			d.at += int64(i) + 1
			d.lo += i + 1
			return head, true, nil
		}
		d.at += int64(d.hi - d.lo)
		d.lo, d.hi = 0, 0
		if d.err != nil {
			if !errors.Is(d.err, io.EOF) {
				return nil, false, d.err
			}
			return head, false, nil
		}
		d.fill()
	}
}

// Lines returns the lines that are left, up to the first error of the reader. Each line
// is valid until the next one.
func (d *Decoder) Lines() iter.Seq2[*Line, error] {
	return func(yield func(*Line, error) bool) {
		for {
			l, err := d.Next()
			if errors.Is(err, io.EOF) || !yield(l, err) || err != nil {
				return
			}
		}
	}
}
