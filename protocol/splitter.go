package protocol

import (
	"bytes"
	"cmp"
)

// DefaultMaxLine is the ceiling a [Splitter] puts on one line: 64 MiB.
const DefaultMaxLine = 64 << 20

const (
	minChunk  = 1 << 10  // first and smallest chunk
	maxChunk  = 32 << 10 // largest chunk that is not forced by one long line
	minRead   = 512      // a chunk with less free space than this is given up
	oversized = 256      // bytes of an oversize line kept for diagnostics
)

// Line is one line of the stream, without its newline.
//
// Data has surrounding white space removed and is never blank. It aliases the chunk it
// was read into, which is never written again, unless [Splitter.Release] says so: a Line
// stays valid and may be shared.
// Keeping it keeps its chunk: at most 32 KiB, or twice the line's own length if that is
// more. Copy small parts of many lines that you keep.
type Line struct {
	// Data is the line; nil if Oversize is set.
	Data []byte
	// Oversize is the length in bytes of a line above the ceiling, which
	// was skipped; 0 for every other line.
	Oversize int64
	// Head is a copy of the first bytes of an oversize line, at most 256.
	Head []byte
}

// Splitter cuts a byte stream into lines. The caller reads into [Splitter.Buffer],
// passes the count to [Splitter.Commit] and takes lines from [Splitter.Next] until it
// returns none; at end of stream [Splitter.Finish] gives the rest. The lines depend on
// the bytes alone, never on where reads cut them.
//
// It does no I/O and is not safe for concurrent use. The zero value has the
// default ceiling.
type Splitter struct {
	max   int
	size  int    // capacity of the next chunk
	chunk []byte // len is the part filled so far
	start int    // where the pending line begins
	scan  int    // chunk[start:scan] is known to hold no newline
	kept  int    // chunk[:kept] may be in use by whoever keeps lines
	free  int    // what the last Buffer call offered

	skipped int64  // length of the line being skipped
	head    []byte // its first bytes; non-nil while skipping
}

// NewSplitter returns a splitter that skips lines longer than maxLine bytes,
// the newline not counted. 0 or less means [DefaultMaxLine].
func NewSplitter(maxLine int) *Splitter {
	return &Splitter{max: maxLine}
}

// Buffer returns free space to read into, never empty. Its size follows the
// traffic: from 1 KiB up to 32 KiB while reads fill it, down again when they
// do not, and as needed for a long line. It is valid until the next call.
func (s *Splitter) Buffer() []byte {
	// A chunk is given up when it is full, or when nothing of it is pending
	// and traffic has become too thin for its size.
	tooLarge := cap(s.chunk) > 4*s.size || s.size == minChunk && cap(s.chunk) > minChunk
	if cap(s.chunk)-len(s.chunk) < minRead || s.Pending() == 0 && tooLarge {
		s.grow()
	}
	b := s.chunk[len(s.chunk):cap(s.chunk)]
	if len(b) > maxChunk {
		// The lines after a long line then fit a regular chunk (see leave).
		b = b[:maxChunk:maxChunk]
	}
	s.free = len(b)
	return b
}

// grow moves the pending bytes to a new chunk with room to read.
func (s *Splitter) grow() {
	pending := s.chunk[s.start:]
	s.size = cmp.Or(s.size, minChunk)
	// Doubling keeps the copying of a long line linear; nothing longer than
	// the limit is ever held.
	size := min(2*len(pending), s.limit()+maxChunk)
	chunk := make([]byte, len(pending), max(size, len(pending)+minRead, s.size))
	copy(chunk, pending)
	s.scan -= s.start
	s.start, s.kept = 0, 0
	s.chunk = chunk
}

func (s *Splitter) limit() int {
	if s.max <= 0 {
		return DefaultMaxLine
	}
	return s.max
}

// Commit says that the first n bytes of the last Buffer were filled.
func (s *Splitter) Commit(n int) {
	if n < 0 || n > s.free {
		panic("protocol: Splitter.Commit: count out of range of the last Buffer")
	}
	switch full := n == s.free; {
	case full && n >= s.size/2:
		s.size = min(2*s.size, maxChunk)
	case !full && n < s.size/4:
		s.size = max(s.size/2, minChunk)
	}
	s.chunk = s.chunk[:len(s.chunk)+n]
	s.free = 0
}

// Next returns the next complete line; false if more bytes are needed.
// Blank lines are skipped.
func (s *Splitter) Next() (Line, bool) {
	for s.scan < len(s.chunk) {
		i := bytes.IndexByte(s.chunk[s.scan:], '\n')
		if i < 0 {
			s.scan = len(s.chunk)
			break
		}
		end := s.scan + i
		raw := s.chunk[s.start:end]
		s.start, s.scan = end+1, end+1
		line, ok := s.line(raw)
		if cap(s.chunk) > maxChunk {
			s.leave()
		}
		if ok {
			return line, true
		}
	}
	if s.head != nil || len(s.chunk)-s.start > s.limit() {
		s.Skip()
	}
	return Line{}, false
}

// line makes a Line of a complete raw line; false if it is blank.
func (s *Splitter) line(raw []byte) (Line, bool) {
	if s.head != nil || len(raw) > s.limit() {
		s.drop(raw)
		l := Line{Oversize: s.skipped, Head: s.head}
		s.head, s.skipped = nil, 0
		return l, true
	}
	data := trimSpace(raw)
	return Line{Data: data}, len(data) > 0
}

// leave abandons a chunk that one long line made large, so that the short
// lines after it do not keep it alive.
func (s *Splitter) leave() {
	rest := s.chunk[s.start:]
	chunk := make([]byte, len(rest), max(s.size, len(rest)))
	copy(chunk, rest)
	s.chunk, s.start, s.scan, s.kept = chunk, 0, 0, 0
}

// drop counts bytes of a line that is being skipped.
func (s *Splitter) drop(b []byte) {
	s.skipped += int64(len(b))
	if s.head == nil {
		s.head = make([]byte, 0, oversized)
	}
	s.head = append(s.head, b[:min(len(b), oversized-len(s.head))]...)
}

// Skip gives up the line that is pending, as if it had passed the ceiling:
// what is held of it is released, the rest is skipped up to its newline, and
// it is then reported as an oversize Line. For a caller whose budget for long
// lines is spent. It does nothing if no byte is pending.
func (s *Splitter) Skip() {
	rest := s.chunk[s.start:]
	if len(rest) == 0 || bytes.IndexByte(rest, '\n') >= 0 {
		return
	}
	s.drop(rest)
	if cap(s.chunk) > maxChunk {
		s.chunk, s.start, s.scan, s.kept = nil, 0, 0, 0
		return
	}
	s.start, s.scan = len(s.chunk), len(s.chunk)
}

// Release says that nobody uses the lines any more that Next has returned since the last
// call of Release or Keep: the caller has copied what it needs. Buffer then offers their
// room again. Call one of both, after Next has returned false, or neither ever.
func (s *Splitter) Release() {
	if s.Pending() == 0 {
		s.chunk, s.start, s.scan = s.chunk[:s.kept], s.kept, s.kept
	}
}

// Keep says that somebody keeps some of these lines. It is what holds without a call.
func (s *Splitter) Keep() { s.kept = s.start }

// Rest gives up the buffer, and begins anew with a small one, if no byte of a
// line is pending. For a caller who may have to wait long for the next.
func (s *Splitter) Rest() {
	if s.Pending() == 0 {
		s.chunk, s.start, s.scan, s.kept, s.size = nil, 0, 0, 0, 0
	}
}

// Finish returns the last line of a stream that does not end in a newline.
// Call it at end of stream until it returns false; it first gives the
// complete lines that Next has not given yet.
func (s *Splitter) Finish() (Line, bool) {
	if l, ok := s.Next(); ok {
		return l, true
	}
	raw := s.chunk[s.start:]
	skipping := s.head != nil
	s.chunk, s.start, s.scan, s.kept = nil, 0, 0, 0
	if len(raw) == 0 && !skipping {
		return Line{}, false
	}
	return s.line(raw)
}

// Pending is the number of bytes held of a line that is not complete yet, 0
// while a line is being skipped. The chunk that holds them may be twice as
// large. Meaningful after Next has returned false.
func (s *Splitter) Pending() int {
	return len(s.chunk) - s.start
}

// trimSpace removes ASCII white space from both ends.
func trimSpace(b []byte) []byte {
	i, j := 0, len(b)
	for i < j && isSpace(b[i]) {
		i++
	}
	for j > i && isSpace(b[j-1]) {
		j--
	}
	return b[i:j:j]
}

func isSpace(c byte) bool {
	return c == ' ' || (c >= '\t' && c <= '\r')
}
