package protocol

import (
	"bytes"
	"encoding/json"

	"github.com/agent-troupe/troupe/base/jsonscan"
)

// looseString returns a string value as text, null as "", and any other value
// as its JSON.
func looseString(value []byte) string {
	if len(value) > 0 && value[0] == '"' {
		return jsonscan.Text(value)
	}
	if string(value) == "null" {
		return ""
	}
	return string(value)
}

// appendSurrogate appends a lone surrogate in the form that UTF-8 has for other
// runes of its size, so that two of them stay apart.
func appendSurrogate(dst []byte, r rune) []byte {
	return append(dst, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
}

// isNull reports whether raw is absent or JSON null.
func isNull(raw json.RawMessage) bool {
	return len(raw) == 0 || string(bytes.TrimSpace(raw)) == "null"
}
