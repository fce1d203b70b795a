package callback

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

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

func fetch[R any](req R, ask func(context.Context, R) (session.Token, error), kind tokenKind) asking {
	refuse := func(text string, err error) error {
		return &RefusalError{Text: text, Code: kind.code, Err: err}
	}
	return func(ctx context.Context) (json.RawMessage, error) {
		if ask == nil {
			return nil, refuse("No "+kind.option+" callback configured", errNotConfigured)
		}
		missing := "Host did not provide a " + kind.name
		token, err := ask(ctx, req)
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
func consult(what string, gate session.TurnGate, id, known string, turn *protocol.TurnInfo) asking {
	return func(ctx context.Context) (json.RawMessage, error) {
		if gate == nil || id != known {
			text := "Unknown " + what + " callback: " + id
			return nil, &RefusalError{Text: text, Err: errors.New(text)}
		}
		reply, err := gate(ctx, turn)
		if err != nil {
			return nil, err
		}
		return json.Marshal(reply)
	}
}

func artifacts(resolve session.ResolveSessionArtifacts, req *protocol.ResolveSessionArtifactsRequest) asking {
	return func(ctx context.Context) (json.RawMessage, error) {
		if resolve == nil {
			return nil, &RefusalError{
				Text: "No resolveSessionArtifacts callback configured",
				Code: "resolve_session_artifacts_unavailable", Err: errNotConfigured,
			}
		}
		answer, err := resolve(ctx, req)
		if err != nil {
			return nil, err
		}
		if len(answer) > 0 && !json.Valid(answer) {
			return nil, errors.New("resolveSessionArtifacts: the answer is not valid JSON")
		}
		return answer, nil
	}
}
