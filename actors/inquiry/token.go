package inquiry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/agent-troupe/troupe/actors/dispatch"
	"github.com/agent-troupe/troupe/internal/shown"
	"github.com/agent-troupe/troupe/protocol"
)

// Token is what the agent logs in with. Printing it does not show it.
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
	if f.Flag('#') {
		shown.Print(f, verb, t.GoString())
		return
	}
	shown.Print(f, verb, t.String())
}

// MarshalJSON keeps the token out of logs that print JSON.
func (t Token) MarshalJSON() ([]byte, error) { return json.Marshal(t.String()) }

// LogValue keeps the token out of structured logs.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// tokenKind is one of the two kinds of tokens; the words are the vendor's
// (observed on the Qoder SDK 1.0.39).
type tokenKind struct{ option, name, code string }

func jobToken() tokenKind {
	return tokenKind{"fetchJobToken", "Job Token", "job_token_unavailable"}
}

func serviceAccountToken() tokenKind {
	return tokenKind{"fetchServiceAccountToken", "Service Account Token", "service_account_token_unavailable"}
}

var errNotConfigured = errors.New("no callback is configured")

// earliest is the first millisecond that is taken for one: a smaller number is a
// time in seconds by mistake.
const earliest = 1_000_000_000_000

func fetch[R any](req R, callback func(context.Context, R) (Token, error), kind tokenKind) run {
	refuse := func(text string, err error) error {
		return &dispatch.Refusal{Text: text, Code: kind.code, Err: err}
	}
	return func(ctx context.Context) (json.RawMessage, error) {
		if callback == nil {
			return nil, refuse("No "+kind.option+" callback configured", errNotConfigured)
		}
		missing := "Host did not provide a " + kind.name
		token, err := callback(ctx, req)
		if err != nil {
			return nil, refuse(missing, err)
		}
		if token.Value == "" {
			return nil, refuse(missing, fmt.Errorf("%s returned no token", kind.option))
		}
		reply := protocol.TokenReply{Token: token.Value}
		if !token.ExpiresAt.IsZero() {
			reply.ExpiresAt = token.ExpiresAt.UnixMilli()
			if reply.ExpiresAt < earliest {
				return nil, refuse(missing, fmt.Errorf("%s: the token's ExpiresAt is %v; was it made of milliseconds?", kind.option, token.ExpiresAt))
			}
		}
		return json.Marshal(reply)
	}
}

// consult asks a gate. The agent names the callback as initialize did.
func consult(what string, gate Gate, id, known string, turn *protocol.TurnInfo) run {
	return func(ctx context.Context) (json.RawMessage, error) {
		if gate == nil || id != known {
			text := "Unknown " + what + " callback: " + id
			return nil, &dispatch.Refusal{Text: text, Err: errors.New(text)}
		}
		reply, err := gate(ctx, turn)
		if err != nil {
			return nil, err
		}
		return json.Marshal(reply)
	}
}

func artifacts(c *Callbacks, req *protocol.ResolveSessionArtifactsRequest) run {
	return func(ctx context.Context) (json.RawMessage, error) {
		if c.SessionArtifacts == nil {
			return nil, &dispatch.Refusal{
				Text: "No resolveSessionArtifacts callback configured",
				Code: "resolve_session_artifacts_unavailable", Err: errNotConfigured,
			}
		}
		answer, err := c.SessionArtifacts(ctx, req)
		if err != nil {
			return nil, err
		}
		if len(answer) > 0 && !json.Valid(answer) {
			return nil, errors.New("resolveSessionArtifacts: the answer is no JSON")
		}
		return answer, nil
	}
}
