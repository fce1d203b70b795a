package protocol

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/agent-troupe/troupe/base/jsonscan"
)

// The append functions write one line of the wire each, with a fixed order of
// keys, ending in the only newline it has. On error they return dst as it was.

// AppendControlRequest appends a control_request line. request is a JSON
// object that names its own subtype; it is written compact.
func AppendControlRequest(dst []byte, id string, request json.RawMessage) ([]byte, error) {
	out := append(dst, `{"type":"control_request","request_id":`...)
	out = appendString(out, id)
	out = append(out, `,"request":`...)
	out, err := appendCompact(out, request)
	if err != nil {
		return dst, fmt.Errorf("protocol: encode control_request %q: request: %w", id, err)
	}
	return append(out, "}\n"...), nil
}

// AppendControlSuccess appends the success answer to the control request id.
// A nil response leaves the key out, as for a call without a result; JSON null
// is written as null.
func AppendControlSuccess(dst []byte, id string, response json.RawMessage) ([]byte, error) {
	return TextID(id).AppendSuccess(dst, response)
}

// The keys under which an error answer names its code.
const (
	ErrorCodeKeyClaude = "error_code" // observed on Claude Code 2.1.329
	ErrorCodeKeyQoder  = "code"       // observed on qodercli 1.1.52
)

// AppendControlError appends the error answer to the control request id, its
// code under "error_code". An empty code is left out.
func AppendControlError(dst []byte, id, msg, code string) []byte {
	return appendControlErrorAs(dst, id, msg, ErrorCodeKeyClaude, code)
}

// appendControlErrorAs is [AppendControlError] with a choice of the code's key.
func appendControlErrorAs(dst []byte, id, msg, codeKey, code string) []byte {
	return TextID(id).AppendError(dst, msg, codeKey, code)
}

// AppendControlCancel appends a control_cancel_request line.
func AppendControlCancel(dst []byte, id string) []byte {
	dst = append(dst, `{"type":"control_cancel_request","request_id":`...)
	dst = appendString(dst, id)
	return append(dst, "}\n"...)
}

// appendCompact appends a JSON value without white space between its tokens,
// and so without a newline.
func appendCompact(dst []byte, raw json.RawMessage) ([]byte, error) {
	if len(raw) == 0 {
		return dst, fmt.Errorf("no JSON value")
	}
	return jsonscan.AppendCompact(dst, raw)
}

const hexDigits = "0123456789abcdef"

// appendString appends s as a JSON string. Like the vendors' encoders it
// leaves <, > and & alone; invalid UTF-8 becomes U+FFFD.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(dst, s[from:i]...)
				dst = append(dst, "\ufffd"...)
				from = i + 1
			}
			i += n
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[from:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		default:
			dst = append(dst, `\u00`...)
			dst = append(dst, hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		from = i
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}
