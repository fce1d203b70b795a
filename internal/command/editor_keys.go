package command

import (
	"bytes"
	"strings"
)

// Line breaks and tabs of a paste are edited as these characters: the editor knows one line.
const (
	lineMark = "⏎"
	tabMark  = "⇥"
)

// Around a paste; terminals send it if they are asked to ("bracketed paste").
const (
	pasteBegin = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
	// askPastes and leavePastes have the terminal mark pastes, or not.
	askPastes   = "\x1b[?2004h"
	leavePastes = "\x1b[?2004l"
)

// keys brings what terminals send into the form that golang.org/x/term knows.
type keys struct {
	pasting bool
	broken  bool   // the last byte of the paste was a carriage return
	rest    []byte // the beginning of a marker, or Escape, which the editor would keep as well
}

// plain takes the next bytes of the terminal.
func (k *keys) plain(b []byte) []byte {
	b = append(k.rest, b...)
	k.rest = nil
	var out []byte
	for len(b) > 0 {
		marker, handle := pasteBegin, sameKeys
		if k.pasting {
			marker, handle = pasteEnd, k.inPaste
		}
		at := bytes.Index(b, []byte(marker))
		if at < 0 {
			if n := partial(b, marker); n > 0 {
				k.rest = bytes.Clone(b[len(b)-n:])
				b = b[:len(b)-n]
			}
			return append(out, handle(b)...)
		}
		out = append(append(out, handle(b[:at])...), marker...)
		b, k.pasting, k.broken = b[at+len(marker):], !k.pasting, false
	}
	return out
}

// partial is how long the beginning of marker is that b ends with.
func partial(b []byte, marker string) int {
	for n := min(len(b), len(marker)-1); n > 0; n-- {
		if string(b[len(b)-n:]) == marker[:n] {
			return n
		}
	}
	return 0
}

// inPaste marks line breaks and tabs, and leaves out what would steer the terminal.
func (k *keys) inPaste(b []byte) []byte {
	var out strings.Builder
	for i := 0; i < len(b); i++ {
		c, after := b[i], k.broken
		k.broken = c == '\r'
		switch {
		case c == '\n' && after: // of a pair
		case c == '\n', c == '\r':
			out.WriteString(lineMark)
		case c == '\t':
			out.WriteString(tabMark)
		case c < ' ' || c == 0x7f:
		case c == 0xc2 && i+1 < len(b) && b[i+1] >= 0x80 && b[i+1] < 0xa0:
			i++ // a control character of two bytes
		default:
			out.WriteByte(c)
		}
	}
	return []byte(out.String())
}

// sameKeys replaces other spellings of keys.
func sameKeys(b []byte) []byte {
	return []byte(strings.NewReplacer(
		"\x1b[1~", "\x1b[H", "\x1b[7~", "\x1b[H", "\x1bOH", "\x1b[H",
		"\x1b[4~", "\x1b[F", "\x1b[8~", "\x1b[F", "\x1bOF", "\x1b[F",
		"\x1bOA", "\x1b[A", "\x1bOB", "\x1b[B", "\x1bOC", "\x1b[C", "\x1bOD", "\x1b[D",
		"\x1b[1;5C", "\x1b[1;3C", "\x1b[1;5D", "\x1b[1;3D", "\x1bf", "\x1b[1;3C", "\x1bb", "\x1b[1;3D", // words
		"\x1b\x7f", "\x17",
	).Replace(string(b)))
}

// pasted are the keys that type a line which was edited before.
func pasted(line string) []byte {
	if line == "" {
		return nil
	}
	return []byte(pasteBegin + line + pasteEnd)
}

// unmarked is a line as it was pasted.
func unmarked(line string) string {
	return strings.NewReplacer(lineMark, "\n", tabMark, "\t").Replace(line)
}
