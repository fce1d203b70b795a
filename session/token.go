package session

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"time"
)

// Token is what the agent logs in with. No way of printing, logging or marshaling
// it shows the value.
type Token struct {
	// Value is the token itself, a secret. Empty: there is none.
	Value string
	// ExpiresAt is when it ends; the zero time when that is not known.
	ExpiresAt time.Time
}

func (t Token) String() string {
	switch {
	case t.Value == "":
		return "no token"
	case t.ExpiresAt.IsZero():
		return "token"
	}
	return "token until " + t.ExpiresAt.Format(time.RFC3339)
}

// GoString keeps %#v from showing the token.
func (t Token) GoString() string { return "Token(" + t.String() + ")" }

// Format writes String for every verb but %#v, which has GoString.
func (t Token) Format(f fmt.State, verb rune) {
	text := t.String()
	if f.Flag('#') {
		text = t.GoString()
	}
	if verb == 'q' {
		text = strconv.Quote(text)
	}
	_, _ = io.WriteString(f, text) // package fmt's own buffer
}

// MarshalJSON keeps the token out of logs that print JSON.
func (t Token) MarshalJSON() ([]byte, error) { return json.Marshal(t.String()) }

// LogValue keeps the token out of structured logs.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }
