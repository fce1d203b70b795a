package acp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// defaultMaxLine is the longest line that a connection reads unless MaxLine says
// otherwise, in bytes.
const defaultMaxLine = 32 << 20

// headSize is how much is kept of a line that is too long, to find out whom to answer.
const headSize = 4 << 10

// lines reads lines that end in LF or CRLF, and leaves out blank ones.
type lines struct {
	r   *bufio.Reader
	max int
}

func newLines(r io.Reader, limit int) *lines {
	return &lines{bufio.NewReaderSize(r, 64<<10), limit}
}

// next returns the next line. If long, the line had more than max bytes, and the result
// is its head. The error is the reader's; a last line without an end comes before it.
func (l *lines) next() (line []byte, long bool, err error) {
	for {
		line, long, err = l.read()
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(bytes.TrimSpace(line)) > 0 {
			return line, long, nil // an error comes again
		}
		if err != nil {
			return nil, false, err
		}
	}
}

func (l *lines) read() (line []byte, long bool, err error) {
	for {
		part, err := l.r.ReadSlice('\n')
		end := err == nil
		if end {
			part = part[:len(part)-1]
		}
		if !long && len(line)+len(part) > l.max {
			long = true
			line = append(line, part...)
			line = append([]byte(nil), line[:min(len(line), headSize)]...)
		} else if !long {
			line = append(line, part...)
		}
		if end || !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}

// Message is a line of the protocol: a request (ID and Method), a notification (Method alone)
// or an answer (ID, and Result or Error).
type Message struct {
	ID     *ID             `json:"id"` // nil: absent
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *Error          `json:"error"`
}

// ParseMessage reads a line. The error says what to answer, to the id of the message if it
// can be read. The message keeps parts of line.
func ParseMessage(line []byte) (Message, *Error) {
	var members map[string]json.RawMessage
	switch err := json.Unmarshal(line, &members); {
	case err != nil && !json.Valid(line):
		return Message{}, &Error{Code: CodeParseError, Message: "the line is not JSON"}
	case err != nil && bytes.HasPrefix(bytes.TrimSpace(line), []byte("[")):
		return Message{}, &Error{Code: CodeInvalidRequest, Message: "batches are not part of the protocol"}
	case err != nil || members == nil:
		return Message{}, &Error{Code: CodeInvalidRequest, Message: "the line is no object"}
	}
	m := Message{Params: members["params"], Result: members["result"]}
	if raw, ok := members["id"]; ok {
		m.ID = &ID{}
		if err := json.Unmarshal(raw, m.ID); err != nil {
			return Message{}, &Error{Code: CodeInvalidRequest, Message: "the id is neither a string nor a number"}
		}
	}
	if raw, ok := members["method"]; ok {
		if err := json.Unmarshal(raw, &m.Method); err != nil || m.Method == "" {
			return m, &Error{Code: CodeInvalidRequest, Message: "the method is no text"}
		}
		return m, nil
	}
	if raw, ok := members["error"]; ok && string(raw) != "null" {
		m.Error = &Error{}
		if err := json.Unmarshal(raw, m.Error); err != nil {
			m.Error = &Error{Code: CodeInternalError, Message: "the error of the answer cannot be read"}
		}
	}
	if m.ID == nil || m.Result == nil && m.Error == nil {
		return m, &Error{Code: CodeInvalidRequest, Message: "the object is neither a request nor an answer"}
	}
	return m, nil
}

// ParseHead reads the id and the method in the first bytes of a line, for one that is too
// long to be read. Parts that are not in head are missing in the message.
func ParseHead(head []byte) (m Message) {
	d := json.NewDecoder(bytes.NewReader(head))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return m
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return m
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return m
		}
		switch key {
		case "id":
			id := &ID{}
			if id.UnmarshalJSON(value) == nil {
				m.ID = id
			}
		case "method":
			_ = json.Unmarshal(value, &m.Method)
		}
	}
	return m
}
