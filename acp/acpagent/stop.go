package acpagent

import (
	"cmp"
	"encoding/json"
	"errors"

	"github.com/agent-troupe/troupe/acp"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	sessions "github.com/agent-troupe/troupe/session"
)

// maxMessage bounds the text of an error, in bytes.
const maxMessage = 2000

// stopReason says how a turn ended. A failure is an error, apart from a limit that the
// protocol has a reason for.
func stopReason(r *sdk.ResultMessage) (acp.StopReason, error) {
	switch {
	case r.Interrupted():
		return acp.StopReasonCancelled, nil
	case r.Subtype == protocol.ResultErrorMaxTurns:
		return acp.StopReasonMaxTurnRequests, nil
	case r.Failed() && (r.APIErrorStatus == 401 || r.APIErrorType == "authentication_error" ||
		r.TerminalReason == "auth_required" || r.TerminalReason == "auth_payload_missing"): // Qoder's
		return "", &acp.Error{Code: acp.CodeAuthenticationRequired, Message: cut(r.Text())}
	case r.Failed():
		kind := r.Subtype
		if kind == protocol.ResultSuccess {
			kind = "api_error"
		}
		return "", internal(cmp.Or(r.Text(), kind), map[string]any{"errorKind": kind, "apiErrorStatus": r.APIErrorStatus, "apiErrorType": r.APIErrorType})
	case r.StopReason == "max_tokens":
		return acp.StopReasonMaxTokens, nil
	case r.StopReason == "refusal":
		return acp.StopReasonRefusal, nil
	}
	return acp.StopReasonEndTurn, nil
}

// turnError is the answer to a prompt whose turn has no result.
func turnError(err error) error {
	if _, ok := errors.AsType[*acp.Error](err); ok {
		return err
	}
	kind := "no_result"
	switch {
	case is[*sessions.AuthError](err):
		return &acp.Error{Code: acp.CodeAuthenticationRequired, Message: cut(err.Error())}
	case is[*sessions.RecoveryError](err), is[*sessions.ExitError](err):
		kind = "agent_exited"
	case errors.Is(err, sessions.ErrNotRun):
		kind = "not_run"
	}
	return internal(err.Error(), map[string]any{"errorKind": kind})
}

// startError is the answer when an agent could not be started.
func startError(err error) error {
	switch {
	case is[*acp.Error](err):
		return err
	case is[*sessions.AuthError](err):
		return &acp.Error{Code: acp.CodeAuthenticationRequired, Message: cut(err.Error())}
	}
	return internal(err.Error(), map[string]any{"errorKind": "agent_not_started"})
}

func is[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

func internal(message string, data map[string]any) error {
	encoded, _ := json.Marshal(data) // texts and numbers
	return &acp.Error{Code: acp.CodeInternalError, Message: cut(message), Data: encoded}
}

func cut(text string) string {
	if len(text) > maxMessage {
		text = text[:maxMessage] + "…"
	}
	return text
}
