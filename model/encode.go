package model

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"

	"github.com/agent-troupe/troupe/protocol"
)

// appendString appends s as a JSON string, with no more escapes than JSON demands: the same
// text is the same bytes for each codec, and costs no more tokens than it must. Invalid
// UTF-8 becomes U+FFFD.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				b = append(append(b, s[from:i]...), "\ufffd"...)
				from = i + 1
			}
			i += n
			continue
		}
		i++
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[from:i-1]...)
		from = i
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(b, s[from:]...), '"')
}

// appendMember appends ,"key":"value".
func appendMember(b []byte, key, value string) []byte {
	b = append(b, ',')
	b = appendString(b, key)
	b = append(b, ':')
	return appendString(b, value)
}

// exact is b without the room behind it, which a session would keep for each of its messages.
func exact(b []byte) []byte {
	if cap(b)-len(b) > len(b)/8 {
		return bytes.Clone(b)
	}
	return slices.Clip(b)
}

// orElse is j, or the given text if j is empty.
func orElse(j json.RawMessage, none string) []byte {
	if len(j) == 0 {
		return []byte(none)
	}
	return j
}

// plainText is the text of a result's content blocks. Other blocks are named.
func plainText(content json.RawMessage) string {
	var text string
	if protocol.Unmarshal(content, &text) == nil {
		return text
	}
	var blocks []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if protocol.Unmarshal(content, &blocks) != nil {
		return string(content)
	}
	for i, b := range blocks {
		if i > 0 {
			text += "\n"
		}
		if b.Type == "text" {
			text += b.Text
		} else {
			text += "[" + b.Type + "]"
		}
	}
	return text
}
