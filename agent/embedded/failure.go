package embedded

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/model"
)

// maxWait is the longest wait that a provider may ask for: a longer one ends the turn at once.
const maxWait = 60 * time.Second

// again reports whether the request is worth repeating.
func again(e *model.Error) bool {
	return e.RetryAfter <= maxWait && (e.Temporary() || e.Class == model.Broken && !e.Started)
}

// nameOf is what Claude Code calls the error (observed on 2.1.329).
func nameOf(e *model.Error) string {
	switch e.Class {
	case model.Overload:
		return "overloaded"
	case model.Rate:
		return "rate_limit"
	case model.Quota:
		return "billing_error"
	case model.Auth:
		return "authentication_failed"
	case model.Server:
		return "server_error"
	case model.Invalid, model.TooLong:
		return "invalid_request"
	case model.Network, model.Broken:
	}
	return "unknown"
}

func statusOf(e *model.Error) any {
	if e.Status == 0 || e.Status == http.StatusOK {
		return nil
	}
	return e.Status
}

// noPriceError ends a turn whose budget its calls would never spend.
type noPriceError struct{ model string }

func (e *noPriceError) Error() string {
	return fmt.Sprintf("the price of %s is not known, and MaxBudgetUSD limits the cost: change the model, or add the price to the profiles", e.model)
}

// failed ends a turn whose call of the model has failed: with a message that says so and is
// not part of the conversation, as Claude Code does (observed).
func (t *talk) failed(turn *agent.Turn, err error) error {
	e, ok := errors.AsType[*model.Error](err)
	if !ok || turn.Err() != nil {
		if cause := turn.Err(); cause != nil {
			return cause
		}
		return err
	}
	words := "API Error: " + e.Error()
	if e.Class == model.TooLong {
		words = "Prompt is too long"
	}
	none := noUsage()
	turn.OpenMessage(agent.ModelMessage{ID: turn.UUID(), RequestID: e.RequestID, Model: "<synthetic>", Usage: none,
		More: agent.Object{"stop_reason": "stop_sequence", "stop_sequence": ""}})
	more := agent.Object{"error": nameOf(e), "is_api_error_message": true}
	status := 0
	if statusOf(e) != nil {
		status = e.Status
		more["api_error_status"] = status
	}
	if e.Type != "" {
		more["api_error_type"] = e.Type
	}
	ends := agent.Object{"stop_reason": "stop_sequence", "terminal_reason": "api_error"}
	if e.Type != "" {
		ends["api_error_type"] = e.Type
	}
	turn.Block(agent.Object{"type": "text", "text": words}, more)
	turn.CloseMessage("stop_sequence", none, 0)
	yes := true
	return turn.Finish(agent.Result{
		IsError: &yes, StopReason: "stop_sequence", TerminalReason: "api_error", APIErrorStatus: status,
		More: ends,
	})
}
