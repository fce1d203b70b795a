package embedded

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/model"
)

// trouble is what a turn says of an error of the model's endpoint, as Claude Code 2.1.329
// does (observed).
type trouble struct {
	text, name string
	terminal   string // terminal_reason
	stop       string // stop_reason
	api        string // api_error; "": not said
	refused    string // the message that the provider has stopped; "": none
}

// retryName is what the error is called when the request is repeated.
func retryName(e *model.Error) string {
	switch {
	case e.Class == model.Overload && e.Status != http.StatusServiceUnavailable:
		return "overloaded"
	case e.Class == model.Rate:
		return "rate_limit"
	case e.Class == model.Auth:
		return "authentication_failed"
	case e.Class == model.Network, e.Class == model.Broken:
		return "unknown"
	}
	return "server_error"
}

func statusOf(e *model.Error) any {
	if e.Status == 0 || e.Status == http.StatusOK {
		return nil
	}
	return e.Status
}

// lengths are the numbers of a refusal because the conversation is too long.
var lengths = regexp.MustCompile(`(\d+) tokens > (\d+)`)

const tooLarge = "Request too large (max 32MB). Accumulated images and attachments in the conversation pushed the request over the limit. Remove older images or compact the conversation."

// describe says what an error means for the person.
func (t *talk) describe(e *model.Error, name string) trouble {
	f := trouble{terminal: "api_error", stop: "stop_sequence", name: "unknown"}
	words := e.Message
	if words == "" && e.Err != nil {
		words = "Connection error: " + e.Err.Error()
	}
	if e.Status != 0 && e.Status != http.StatusOK {
		words = fmt.Sprintf("%d %s", e.Status, words)
	}
	f.text = "API Error: " + words
	switch {
	case e.Status == http.StatusRequestEntityTooLarge:
		f.text, f.name, f.terminal = tooLarge, "invalid_request", "image_error"
	case e.Class == model.TooLong:
		f.text, f.name, f.terminal = "Prompt is too long", "invalid_request", "prompt_too_long"
		if n := lengths.FindStringSubmatch(e.Message); n != nil {
			f.text += fmt.Sprintf(" · the request is ~%s tokens (limit %s)", n[1], n[2])
		}
	case e.Class == model.Quota && strings.Contains(strings.ToLower(e.Message), "credit balance is too low"):
		f.text, f.name = "Credit balance is too low", "billing_error"
	case e.Class == model.Quota && e.Status != http.StatusPaymentRequired:
		f.name = "billing_error"
	case e.Status == http.StatusUnauthorized && strings.Contains(strings.ToLower(e.Message), "x-api-key"):
		f.text, f.name = "Invalid API key · Fix external API key", "authentication_failed"
	case e.Class == model.Auth:
		f.text, f.name = "Failed to authenticate. "+f.text, "authentication_failed"
		if e.Err != nil { // of Config.Key
			f.text += ": " + e.Err.Error()
		}
	case e.Status == http.StatusNotFound:
		f.text = "There's an issue with the selected model (" + name + "). It may not exist or you may not have access to it."
		f.name = "model_not_found"
	case e.Class == model.Rate:
		f.text, f.name = fmt.Sprintf("API Error: Request rejected (%d) · %s", http.StatusTooManyRequests, e.Message), "rate_limit"
	case e.Class == model.Network && !e.Started:
		f.name, f.api = "server_error", "connection_failed"
	case e.Class == model.Overload, e.Class == model.Server, e.Temporary() && e.Status != 0 && e.Status != http.StatusOK:
		f.text += ". This is a server-side issue, usually temporary — try again in a moment. If it persists, check your inference gateway (" + t.gateway() + ")."
		f.name = "server_error"
	}
	return f
}

// gateway is the host of the endpoint.
func (t *talk) gateway() string {
	at := place(t.cfg.Model)
	if u, err := url.Parse(at); err == nil && u.Host != "" {
		return u.Host
	}
	return "the endpoint"
}

// noPriceError ends a turn whose budget its calls would never spend.
type noPriceError struct{ model string }

func (e *noPriceError) Error() string {
	return fmt.Sprintf("the price of %s is not known, and MaxBudgetUSD limits the cost: change the model, or add the price to the profiles", e.model)
}

// priced is an error if the session's cost is limited, and that of the model is not known.
func (t *talk) priced(name string) error {
	if t.limited && t.cfg.Profiles.Model(name).Price == nil {
		return &noPriceError{name}
	}
	return nil
}

// tooLongError ends a turn whose answers end at the limit of tokens again and again.
type tooLongError struct{ limit int }

func (e *tooLongError) Error() string {
	return fmt.Sprintf("API Error: The response exceeded the %d output token maximum. To configure this behavior, set MaxTokens of the agent's configuration.", e.limit)
}

// failed ends a turn whose call of the model has failed: with a message that says so and is
// not part of the conversation.
func (t *talk) failed(l *agent.Lane, err error) error {
	if cause := l.Err(); cause != nil {
		return cause
	}
	if long, ok := errors.AsType[*tooLongError](err); ok {
		return t.end(l, trouble{text: long.Error(), name: "max_output_tokens", terminal: "api_error", stop: "stop_sequence", api: "max_output_tokens"}, &model.Error{})
	}
	e, ok := errors.AsType[*model.Error](err)
	if !ok {
		return err
	}
	return t.end(l, t.describe(e, t.model(l)), e)
}

// refused ends a turn whose answer the provider has stopped a second time.
func (t *talk) refused(l *agent.Lane, a *answer) error {
	if t.up == nil {
		l.System("model_refusal_no_fallback", agent.Object{
			"original_model": t.model(l), "request_id": a.request, "api_refusal_category": nil, "api_refusal_explanation": nil, "content": "",
			"refused_user_message_uuid": t.turnOf.MessageUUID(),
		})
	}
	text := "API Error: The model's safeguards flagged this message. This sometimes happens with safe, normal conversations.\n\nTry rephrasing the request in a new session or change your model."
	if a.request != "" {
		text += "\n\nRequest ID: " + a.request
	}
	text += "\n\nMessage ID: " + a.id
	t.stops++
	return t.end(l, trouble{text: text, name: "invalid_request", terminal: "api_error", stop: "refusal", refused: a.id}, &model.Error{RequestID: a.request})
}

// end ends a turn with an error of the model's endpoint.
func (t *talk) end(l *agent.Lane, f trouble, e *model.Error) error {
	more := agent.Object{}
	status := 0
	if statusOf(e) != nil {
		status = e.Status
	}
	if status != 0 && t.up == nil { // as observed
		more["api_error_status"] = status
	}
	if e.Type != "" {
		more["api_error_type"] = e.Type
	}
	request := e.RequestID
	if e.Class == model.Broken { // as observed
		request = ""
	}
	if f.api != "" {
		more["api_error"] = f.api
	}
	if f.refused != "" {
		more["refused_message_id"] = f.refused
	}
	if f.api == "max_output_tokens" {
		more["api_error_params"] = agent.Object{"cut": "output_limit"}
	}
	t.first = firsts{} // such a result says nothing of the answers before, as observed
	t.synthetic(l, f, request, more)
	if t.up != nil {
		return &agentError{trouble: f, status: status, request: request, model: t.model(l)}
	}
	yes := true
	ends := agent.Object{"stop_reason": f.stop, "terminal_reason": f.terminal}
	if e.Type != "" {
		ends["api_error_type"] = e.Type
	}
	if f.api != "" {
		ends["api_error"] = f.api
	}
	return t.turnOf.Finish(agent.Result{
		IsError: &yes, StopReason: f.stop, TerminalReason: f.terminal, APIErrorStatus: status, More: ends,
	})
}

// synthetic writes a message of the agent's own, which the model does not read.
func (t *talk) synthetic(l *agent.Lane, f trouble, requestID string, more agent.Object) {
	none := noUsage()
	var sequence any = ""
	if f.stop == "tool_use" { // as observed
		sequence = nil
	}
	more["error"], more["is_api_error_message"] = f.name, true
	l.OpenMessage(agent.ModelMessage{
		ID: l.UUID(), RequestID: requestID, Model: synthetic, Usage: none, More: agent.Object{"stop_reason": f.stop, "stop_sequence": sequence},
	})
	l.Block(agent.Object{"type": "text", "text": f.text}, more)
	l.CloseMessage(f.stop, none, 0)
}

// apology says that an answer whose calls are made broke off.
func (t *talk) apology(l *agent.Lane, e *model.Error) {
	what, more := "Connection lost", agent.Object{"api_error": "connection_failed"}
	if e.Class != model.Network {
		what, more = "Server error", agent.Object{}
	}
	t.synthetic(l, trouble{
		text: "API Error: " + what + " mid-response. The response above may be incomplete.", name: "server_error", stop: "tool_use",
	}, "", more)
}
