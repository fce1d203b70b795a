package protocol

import (
	"fmt"
	"slices"
)

// OversizeError says that a line was above the ceiling, and was skipped.
type OversizeError struct {
	Length  int64 // bytes
	Ceiling int   // bytes
}

func (e *OversizeError) Error() string {
	return fmt.Sprintf("a line of %d bytes was skipped, the ceiling is %d: raise MaxLine", e.Length, e.Ceiling)
}

// OversizeMessage has the place of a content line above the ceiling, which was
// skipped. Raw is nil.
type OversizeMessage struct {
	Common
	// Type and Subtype are the line's, as far as its head shows them.
	Type    string `json:"-"`
	Subtype string `json:"-"` // "" for a type without subtypes, and if Head does not show it
	// Head is the first bytes of the line, at most 256.
	Head []byte `json:"-"`
	// Err is what happened.
	Err *OversizeError `json:"-"`
}

func (m *OversizeMessage) wire() (string, string) { return m.Type, m.Subtype }

// OversizeFrame is the frame of a line above the ceiling, of which only the head
// is known. [DecodeMessage] makes an *[OversizeMessage] of it.
func OversizeFrame(head []byte, length int64, ceiling int) Frame {
	return Frame{Raw: head, oversize: &OversizeError{Length: length, Ceiling: ceiling}}
}

// Oversize is why only the head of the line is known; nil for any other frame.
func (f *Frame) Oversize() *OversizeError { return f.oversize }

func (e *OversizeError) message(f *Frame) *OversizeMessage {
	return &OversizeMessage{Type: f.Type, Subtype: f.Subtype, Head: slices.Clone(f.Raw), Err: e}
}
