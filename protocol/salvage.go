package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/agent-troupe/troupe/base/jsonscan"
)

// UnreadableResultError says that a result line could not be read and its text is lost:
// encoding/json does not accept the line as JSON, or the text is not a string.
type UnreadableResultError struct {
	// Partial has the fields that could be read: Subtype, uuids, numbers.
	Partial *ResultMessage
	Err     error // the error of encoding/json
}

func (e *UnreadableResultError) Error() string {
	return fmt.Sprintf("the turn's result could not be read, and its text is lost: %v", e.Err)
}

func (e *UnreadableResultError) Unwrap() error { return e.Err }

// UnreadableResult returns the error of a result that reports success but has lost its
// text; nil for any other message. Such a result ended a turn, but it is not a success.
func UnreadableResult(m Message) *UnreadableResultError {
	u, ok := m.(*UnknownMessage)
	if !ok || u.Err == nil {
		return nil
	}
	r, ok := u.Partial.(*ResultMessage)
	if !ok || r.Failed() || r.Result != "" || string(jsonscan.Get(u.raw, "result")) == `""` {
		return nil
	}
	return &UnreadableResultError{Partial: r, Err: u.Err}
}

// salvage reads a result that encoding/json refuses: each member that is valid on
// its own, and the text even if an escape in it is not.
func (m *ResultMessage) salvage(line []byte) {
	if json.Valid(line) {
		return // the rest of it was decoded
	}
	var one []byte
	for key, value := range Members(line) {
		one = append(appendString(append(one[:0], '{'), string(key)), ':')
		one = append(append(one, value...), '}')
		if json.Valid(one) {
			_ = Unmarshal(one, m) // of another type: left out
		} else if string(key) == "result" && value[0] == '"' {
			m.Result = string(looseText(value[1 : len(value)-1]))
		}
	}
}

// looseText is the text inside a string that is not valid JSON: an invalid escape stays
// as it was written.
func looseText(s []byte) []byte {
	var out []byte
	for len(s) > 0 {
		n := bytes.IndexByte(s, '\\')
		if n < 0 {
			n = len(s)
		}
		out, s = append(out, s[:n]...), s[n:]
		if n = escapeLen(s); n == 0 && len(s) > 0 {
			out, s = append(out, s[0]), s[1:]
		}
		out, s = jsonscan.AppendUnescaped(out, s[:n]), s[n:]
	}
	return out
}

// escapeLen is the length of the escape at the start of s, both halves of a pair
// included; 0 without an escape.
func escapeLen(s []byte) int {
	switch r := jsonscan.HexRune(s); {
	case len(s) < 2 || s[0] != '\\':
		return 0
	case bytes.IndexByte([]byte(`"\\/bfnrt`), s[1]) >= 0:
		return 2
	case r < 0:
		return 0
	case utf16.IsSurrogate(r) && utf16.DecodeRune(r, jsonscan.HexRune(s[6:])) != utf8.RuneError:
		return 12
	}
	return 6
}
