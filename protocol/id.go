package protocol

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ID is the id of a control request: the JSON token that stood in the line,
// byte for byte. "" is a request without an id.
//
// Agents send strings. An id of another form, such as a number, null or a string with a
// lone surrogate, is kept as its JSON token, and the answer has that token.
type ID string

// TextID is the ID whose token is the JSON string of text.
func TextID(text string) ID { return ID(appendString(nil, text)) }

// IsZero reports whether the request had no id.
func (id ID) IsZero() bool { return id == "" }

// Text is the id as JavaScript prints it: the text of a string, the shortest
// form of a number, and the token of anything else. A lone surrogate takes the
// three bytes that UTF-8 would have for it.
func (id ID) Text() string {
	switch {
	case id == "":
		return ""
	case id[0] == '"':
		text := string(id[1 : len(id)-1])
		if strings.IndexByte(text, '\\') < 0 && utf8.ValidString(text) {
			return text
		}
		return string(exactText([]byte(text)))
	case id[0] == '-' || id[0] >= '0' && id[0] <= '9':
		switch v, err := strconv.ParseFloat(string(id), 64); {
		case err != nil: // no number, or too large for one
			return string(id)
		case v == 0:
			return "0" // as -0
		default:
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
	}
	return string(id)
}

// Equal reports whether two IDs are the same value: both strings or neither, of
// the same text. An ID that is zero equals none.
func (id ID) Equal(other ID) bool {
	if id == "" || other == "" {
		return false
	}
	return id == other || (id[0] == '"') == (other[0] == '"') && id.Text() == other.Text()
}

// AppendSuccess appends the success answer to the control request id, as
// [AppendControlSuccess] does. The answer to a request without an id has no id.
func (id ID) AppendSuccess(dst []byte, response json.RawMessage) ([]byte, error) {
	const open = `{"type":"control_response","response":{"subtype":"success"`
	out := slices.Grow(dst, len(open)+len(id)+len(response)+len(`,"request_id":,"response":}}`)+1)
	out = id.append(append(out, open...))
	if response != nil {
		var err error
		out = append(out, `,"response":`...)
		if out, err = appendCompact(out, response); err != nil {
			return dst, fmt.Errorf("protocol: encode answer to %s: response: %w", id, err)
		}
	}
	return append(out, "}}\n"...), nil
}

// AppendError appends the error answer to the control request id, with
// the code under codeKey. The answer to a request without an id has no id.
func (id ID) AppendError(dst []byte, msg, codeKey, code string) []byte {
	dst = append(dst, `{"type":"control_response","response":{"subtype":"error"`...)
	dst = id.append(dst)
	dst = append(dst, `,"error":`...)
	dst = appendString(dst, msg)
	if code != "" {
		dst = append(dst, ',')
		dst = appendString(dst, codeKey)
		dst = append(dst, ':')
		dst = appendString(dst, code)
	}
	return append(dst, "}}\n"...)
}

// append appends the member "request_id" after others.
func (id ID) append(dst []byte) []byte {
	if id == "" {
		return dst
	}
	return append(append(dst, `,"request_id":`...), id...)
}
