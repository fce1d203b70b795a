package journal

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"time"
)

// line is a record as the file has it. Its fields are in the order of the format.
type line struct {
	Seq     uint64          `json:"seq"`
	Synced  int64           `json:"synced"` // last seq on the disk when this was written; -1: none
	At      time.Time       `json:"at"`
	Kind    string          `json:"kind"`
	Task    string          `json:"task,omitempty"`
	Attempt int             `json:"attempt,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
}

const (
	crcHead = `,"crc":"`
	crcTail = `"}`
	crcSize = len(crcHead) + 8 + len(crcTail)
)

// appendLine appends the line with its checksum and newline.
func appendLine(to []byte, l *line) ([]byte, error) {
	body, err := json.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("journal: encode a %s record of task %q: %w", l.Kind, l.Task, err)
	}
	to = append(to, body[:len(body)-1]...)
	to = append(to, crcHead...)
	to = hex.AppendEncode(to, checksum(body))
	return append(to, crcTail+"\n"...), nil
}

func checksum(body []byte) []byte {
	sum := crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))
	return []byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}
}

// parseLine reads a line without its newline.
func parseLine(text []byte) (line, error) {
	var l line
	if len(text) <= crcSize {
		return l, errors.New("it is too short")
	}
	at := len(text) - crcSize
	tail := text[at:]
	if !bytes.HasPrefix(tail, []byte(crcHead)) || !bytes.HasSuffix(tail, []byte(crcTail)) {
		return l, errors.New("it does not end with a crc")
	}
	want, err := hex.DecodeString(string(tail[len(crcHead) : len(crcHead)+8]))
	body := append(slices.Clone(text[:at]), '}')
	if err != nil || !bytes.Equal(want, checksum(body)) {
		return l, errors.New("its crc is wrong")
	}
	if err := json.Unmarshal(body, &l); err != nil {
		return l, fmt.Errorf("it is not a record: %w", err)
	}
	return l, nil
}

// content is what a file of lines has to say.
type content struct {
	header  Header
	records []Record
	size    int64 // of the part that is whole
	torn    int64 // bytes after that
}

// parse reads a whole file. Without a whole header it returns [ErrMissing]: the job had
// not begun.
func parse(name string, text []byte) (*content, error) {
	c := &content{}
	var bad error // at the line after the whole part
	next, number, badNumber := uint64(0), 0, 0
	for at := int64(0); at < int64(len(text)); {
		number++
		rest := text[at:]
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			break
		}
		l, err := parseLine(rest[:end])
		at += int64(end) + 1
		if err == nil && l.Seq != next && bad == nil {
			bad, badNumber = fmt.Errorf("its seq is %d, not %d", l.Seq, next), number
		}
		if err == nil && bad != nil && l.Synced >= int64(next) {
			return nil, &CorruptError{Name: name, Line: badNumber, Reason: bad.Error()} // it had been on the disk
		}
		if err != nil && bad == nil {
			bad, badNumber = err, number
		}
		if bad != nil {
			continue
		}
		if err := c.add(&l); err != nil {
			return nil, &CorruptError{Name: name, Line: number, Reason: err.Error()}
		}
		next, c.size = next+1, at
	}
	c.torn = int64(len(text)) - c.size
	if next == 0 {
		return c, ErrMissing
	}
	return c, nil
}

const format = 1

func (c *content) add(l *line) error {
	if l.Seq > 0 {
		c.records = append(c.records, Record{Seq: l.Seq, At: l.At, Kind: l.Kind, Task: l.Task, Attempt: l.Attempt, Data: l.Data})
		return nil
	}
	if err := json.Unmarshal(l.Data, &c.header); err != nil || l.Kind != headerKind {
		return errors.New("the first line is not a header")
	}
	if c.header.Format != format {
		return fmt.Errorf("it has format %d, and this release reads format %d", c.header.Format, format)
	}
	return nil
}

const headerKind = "header"
