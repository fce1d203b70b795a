package callback

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

type asking = func(context.Context) (json.RawMessage, error)

// modern puts the older form of an elicitation into the words of the newer.
func modern(r *protocol.ElicitationPromptRequest) *protocol.ElicitationRequest {
	return &protocol.ElicitationRequest{ElicitationID: r.ElicitationID, Message: r.Prompt, Options: r.Options}
}

// elicit answers an elicitation. Without a callback it is turned down in the
// dialect's way: Claude's SDK declines, Qoder's cancels (observed on 0.3.329 and
// 1.0.39).
func elicit(handle session.ElicitationHandler, req *protocol.ElicitationRequest, d dialect.Dialect) asking {
	return func(ctx context.Context) (json.RawMessage, error) {
		if handle == nil {
			return json.Marshal(protocol.ElicitationResult{Action: d.Traits().ElicitationFallback})
		}
		result, err := handle(ctx, req)
		if err != nil {
			return nil, err
		}
		switch result.Action {
		case "":
			result.Action = d.Traits().ElicitationFallback
		case protocol.ElicitAccept, protocol.ElicitDecline, protocol.ElicitCancel:
		default:
			return nil, fmt.Errorf("elicitation: Action is %q; want %q, %q or %q",
				result.Action, protocol.ElicitAccept, protocol.ElicitDecline, protocol.ElicitCancel)
		}
		if result.Action != protocol.ElicitAccept {
			result.Content = nil // no user agreed to send it
		}
		if result.Content != nil && !bytes.HasPrefix(bytes.TrimSpace(result.Content), []byte("{")) {
			return nil, errors.New("elicitation: Content is not a JSON object")
		}
		return json.Marshal(result)
	}
}

// dialog answers a dialog. Without a callback it is cancelled: an agent whose
// question is never answered waits without end.
func dialog(handle session.UserDialogHandler, req *protocol.UserDialogRequest) asking {
	return func(ctx context.Context) (json.RawMessage, error) {
		result := protocol.UserDialogResult{Behavior: protocol.DialogCancelled}
		if handle != nil {
			var err error
			if result, err = handle(ctx, req); err != nil {
				return nil, err
			}
		}
		switch result.Behavior {
		case "":
			result.Behavior = protocol.DialogCancelled
		case protocol.DialogCompleted, protocol.DialogCancelled:
		default:
			return nil, fmt.Errorf("dialog %s: Behavior is %q; want %q or %q",
				req.DialogKind, result.Behavior, protocol.DialogCompleted, protocol.DialogCancelled)
		}
		if result.Behavior != protocol.DialogCompleted {
			result.Result = nil
		}
		return json.Marshal(result)
	}
}
