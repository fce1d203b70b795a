package cloud

import "bytes"

// Limits of a stream of events. A longer line or event is skipped, and the next one is read.
const (
	maxLine  = 1 << 20
	maxEvent = 4 << 20
)

// sseEvent is one event of a stream of server-sent events.
type sseEvent struct {
	ID, Name string // "" if the event lacks it
	Data     []byte // the data lines, joined by newlines
	Skipped  int    // above 0: the event was too long, had so many bytes, and was not kept
}

// sseDecoder decodes a stream of server-sent events. As the vendor's SDK 1.0.39, it drops an
// event that has neither a name nor data, and one that is not complete at the end (observed).
type sseDecoder struct {
	begun   bool   // the stream's first byte was read
	cr      bool   // the last byte was \r: a \n belongs to it
	line    []byte // the line so far
	long    int    // bytes of the line, if it is too long to be kept
	ev      sseEvent
	hasData bool
	size    int // bytes of the event's fields
}

// feed decodes the next bytes. emit gets each event that they complete and owns it.
func (d *sseDecoder) feed(b []byte, emit func(sseEvent)) {
	for len(b) > 0 {
		if d.cr && b[0] == '\n' {
			d.cr, b = false, b[1:]
			continue
		}
		d.cr = false
		i := bytes.IndexAny(b, "\r\n")
		if i < 0 {
			d.add(b)
			return
		}
		d.add(b[:i])
		d.cr = b[i] == '\r'
		b = b[i+1:]
		d.endLine(emit)
	}
}

// add appends to the line.
func (d *sseDecoder) add(b []byte) {
	if d.long > 0 || len(d.line)+len(b) > maxLine {
		d.long += len(d.line) + len(b)
		d.line = d.line[:0]
		return
	}
	d.line = append(d.line, b...)
}

func (d *sseDecoder) endLine(emit func(sseEvent)) {
	line := d.line
	if !d.begun {
		d.begun = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	d.line = d.line[:0]
	if cap(d.line) > 64<<10 {
		d.line = nil
	}
	switch {
	case d.long > 0:
		d.skip(d.long)
		d.long = 0
	case len(line) == 0:
		d.dispatch(emit)
	default:
		d.field(line)
	}
}

// skip notes that the event is not kept.
func (d *sseDecoder) skip(n int) {
	d.ev.Skipped += n + d.size
	d.ev.Data, d.size = nil, 0
}

func (d *sseDecoder) dispatch(emit func(sseEvent)) {
	if d.hasData || d.ev.Name != "" || d.ev.Skipped > 0 {
		emit(d.ev)
	}
	d.ev, d.hasData, d.size = sseEvent{}, false, 0
}

// field takes a line "name: value". Comments, which have no name, and unknown fields are ignored.
func (d *sseDecoder) field(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	if d.ev.Skipped > 0 || d.size+len(value) > maxEvent {
		if len(name) > 0 {
			d.skip(len(value))
		}
		return
	}
	switch string(name) {
	case "data":
		if d.hasData {
			d.ev.Data = append(d.ev.Data, '\n')
		}
		d.hasData = true
		d.ev.Data = append(d.ev.Data, value...)
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
