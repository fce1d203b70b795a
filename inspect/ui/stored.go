package ui

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
)

const (
	chunk     = 256 << 10 // bytes that are read at a time, from the end of a transcript on
	maxRead   = 16 << 20  // bytes of one answer, and a chunk; a longer line ends the transcript
	maxSearch = 5000      // messages of an answer to a search
)

// stored are messages that the agent has stored before a place: a byte of its file, or the first one
// of those that were seen live. more says that there are earlier ones. A message has its place in the
// file as its number. find asks for more than limit, up to the first message that has the text. An answer
// that has read as much as one may goes up to a place, from where the next one continues: also if no
// message was found in what it has read.
func (w *Window) stored(s *runtime.Session, live []item, before int64, limit int, find string) (list []item, more bool, place int64) {
	list = []item{}
	f, err := s.Transcript()
	if err != nil {
		return list, false, 0 // nothing is stored where it could be read
	}
	defer func() { _ = f.Close() }()
	lines := backwards{f: f, at: before}
	if before == 0 || before >= liveSeq {
		if lines.at, err = f.Seek(0, io.SeekEnd); err != nil {
			return list, false, 0
		}
	}
	seen := map[string]bool{}
	for i := range live {
		seen[live[i].UUID] = live[i].UUID != ""
	}
	find = strings.ToLower(find)
	var raw []byte
	for limit > 0 || find != "" && len(list) < maxSearch {
		if raw, more = lines.next(); !more {
			break
		}
		one, ok := itemOf(raw)
		switch {
		case !ok:
			continue
		case seen[one.UUID]: // it and all after it were seen live
			limit += len(list)
			list = list[:0]
			continue
		}
		one.Seq, one.Gates = lines.at, w.gatesOf(s, one.Message)
		list = append(list, one)
		if limit--; find != "" && has(one.Message, find) {
			find = ""
		}
	}
	slices.Reverse(list)
	if lines.full {
		place = lines.at
	}
	return list, (more || lines.full) && lines.at > 0, place
}

// has reports whether a text, in lower letters, is in a message.
func has(message json.RawMessage, text string) bool {
	var v any
	return protocol.Unmarshal(message, &v) == nil && hasText(v, text)
}

func hasText(v any, text string) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(strings.ToLower(v), text)
	case []any:
		return slices.ContainsFunc(v, func(v any) bool { return hasText(v, text) })
	case map[string]any:
		for k := range v { //troupe:maporder whether any has it
			if hasText(v[k], text) {
				return true
			}
		}
	}
	return false
}

// backwards reads the lines of a file from a place on towards its beginning.
type backwards struct {
	f    io.ReadSeeker
	at   int64  // where the line that was read last begins
	rest []byte // what is before it, from the file's byte at-len(rest) on
	read int64
	some bool // a line was read
	full bool // it has ended for the bytes that it has read; there are lines before
}

// next returns the line before the last one. ok is false at the beginning of the file, after
// maxRead bytes, and if it cannot be read. Text after the last newline is read as a line, too.
func (b *backwards) next() (line []byte, ok bool) {
	for {
		body := bytes.TrimSuffix(b.rest, []byte("\n"))
		from := b.at - int64(len(b.rest))
		if i := bytes.LastIndexByte(body, '\n'); i >= 0 || from == 0 && len(b.rest) > 0 {
			line = body[i+1:]
			b.at = from + int64(i+1)
			b.rest, b.some = b.rest[:i+1], true
			return line, true
		}
		if b.full = from > 0 && b.some && b.read >= maxRead; b.full || from == 0 || len(b.rest) > maxRead {
			return nil, false
		}
		n := min(from, chunk)
		part := make([]byte, n, n+int64(len(b.rest)))
		if _, err := b.f.Seek(from-n, io.SeekStart); err != nil {
			return nil, false
		}
		if _, err := io.ReadFull(b.f, part); err != nil {
			return nil, false
		}
		b.rest = append(part, b.rest...)
		b.read += n
	}
}

// gatesOf says who has decided about the calls whose results a message has.
func (w *Window) gatesOf(s *runtime.Session, message json.RawMessage) map[string]runtime.Gate {
	if !bytes.Contains(message, []byte("tool_result")) {
		return nil
	}
	var says struct {
		Content []struct {
			Type string `json:"type"`
			Call string `json:"tool_use_id"`
		} `json:"content"`
	}
	if protocol.Unmarshal(message, &says) != nil {
		return nil
	}
	var all map[string]runtime.Gate
	for _, b := range says.Content {
		g, ok := s.Gate(b.Call)
		if !ok || b.Type != "tool_result" {
			continue
		}
		if who := w.cfg.Desk.by(b.Call); who != "" && g.By == "person" {
			g.Why = strings.TrimSuffix(who+": "+g.Why, ": ")
		}
		if all == nil {
			all = map[string]runtime.Gate{}
		}
		all[b.Call] = g
	}
	return all
}
