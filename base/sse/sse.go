package sse

import "bytes"

// The limits of a [Decoder] that sets none.
const (
	DefaultMaxLine  = 1 << 20
	DefaultMaxEvent = 4 << 20
)

// Event is one event of a stream.
type Event struct {
	ID, Name string // "" if the event has none
	// Data are the data lines, joined by newlines. It is valid until emit returns.
	Data []byte
	// Skipped is above 0 if the event or a line of it was too long: so many bytes came, and
	// the data was not kept.
	Skipped int
}

// Decoder decodes a stream. It drops an event that has neither a name nor data, and one that
// is not complete at the end. The zero value works. It is not safe for concurrent use.
type Decoder struct {
	// MaxLine and MaxEvent are how many bytes a line and the fields of an event may have;
	// 0: DefaultMaxLine, DefaultMaxEvent. A longer one is skipped, and the next event is
	// read.
	MaxLine, MaxEvent int

	begun   bool   // the stream's first byte was read
	cr      bool   // the last byte was \r: a \n belongs to it
	line    []byte // the line so far
	long    int    // bytes of the line, if it is too long to be kept
	ev      Event
	data    []byte // of the event; kept for the next one
	hasData bool
	size    int // bytes of the event's fields
}

// Feed decodes the next bytes. emit gets each event that they complete; if it returns false,
// the rest of b is dropped, Feed returns false, and the decoder is of no further use.
func (d *Decoder) Feed(b []byte, emit func(*Event) bool) bool {
	for len(b) > 0 {
		if d.cr && b[0] == '\n' {
			d.cr, b = false, b[1:]
			continue
		}
		d.cr = false
		i := endOfLine(b)
		if i < 0 {
			d.add(b)
			return true
		}
		line := b[:i]
		if len(d.line) > 0 || d.long > 0 || len(line) > d.maxLine() {
			d.add(line)
			line = d.line
		}
		d.cr = b[i] == '\r'
		b = b[i+1:]
		if !d.endLine(line, emit) {
			return false
		}
	}
	return true
}

// endOfLine finds the first \r or \n. Most lines have no \r, and IndexByte is much faster
// than IndexAny.
func endOfLine(b []byte) int {
	i := bytes.IndexByte(b, '\n')
	if i < 0 {
		return bytes.IndexByte(b, '\r')
	}
	if j := bytes.IndexByte(b[:i], '\r'); j >= 0 {
		return j
	}
	return i
}

func (d *Decoder) maxLine() int {
	if d.MaxLine > 0 {
		return d.MaxLine
	}
	return DefaultMaxLine
}

func (d *Decoder) maxEvent() int {
	if d.MaxEvent > 0 {
		return d.MaxEvent
	}
	return DefaultMaxEvent
}

// add appends to the line.
func (d *Decoder) add(b []byte) {
	if d.long > 0 || len(d.line)+len(b) > d.maxLine() {
		d.long += len(d.line) + len(b)
		d.line = d.line[:0]
		return
	}
	d.line = append(d.line, b...)
}

func (d *Decoder) endLine(line []byte, emit func(*Event) bool) bool {
	if !d.begun {
		d.begun = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	more := true
	switch {
	case d.long > 0:
		d.skip(d.long)
		d.long = 0
	case len(line) == 0:
		more = d.dispatch(emit)
	default:
		d.field(line)
	}
	d.line = reusable(d.line)
	return more
}

// reusable is b without its content, or nothing if it has grown large.
func reusable(b []byte) []byte {
	if cap(b) > 64<<10 {
		return nil
	}
	return b[:0]
}

// skip notes that the event is not kept.
func (d *Decoder) skip(n int) {
	d.ev.Skipped += n + d.size
	d.data, d.size = reusable(d.data), 0
}

func (d *Decoder) dispatch(emit func(*Event) bool) bool {
	more := true
	if d.hasData || d.ev.Name != "" || d.ev.Skipped > 0 {
		if d.hasData && d.ev.Skipped == 0 {
			d.ev.Data = d.data
		}
		more = emit(&d.ev)
	}
	d.ev, d.hasData, d.size, d.data = Event{}, false, 0, reusable(d.data)
	return more
}

// field takes a line "name: value". Comments, which have no name, and unknown fields are ignored.
func (d *Decoder) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	if d.ev.Skipped > 0 || d.size+len(value) > d.maxEvent() {
		if len(name) > 0 {
			d.skip(len(value))
		}
		return
	}
	switch string(name) {
	case "data":
		if d.hasData {
			d.data = append(d.data, '\n')
		}
		d.hasData = true
		d.data = append(d.data, value...)
		d.size += len(value) + 1
	case "event":
		d.ev.Name = string(value)
		d.size += len(value)
	case "id":
		if !bytes.ContainsRune(value, 0) {
			d.ev.ID = string(value)
			d.size += len(value)
		}
	}
}
