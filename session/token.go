package session

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"time"
)

// Token is a token with which the agent logs in. Printing, logging or marshaling it
// does not show its value.
type Token struct {
	// Value is the token itself, a secret. Empty: there is no token.
	Value string
	// ExpiresAt is when the token expires; the zero time if that is unknown.
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

// Format writes String for every verb, as Token(…) for %#v.
func (t Token) Format(f fmt.State, verb rune) {
	text := t.String()
	if f.Flag('#') {
		text = "Token(" + text + ")"
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
