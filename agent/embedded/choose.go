package embedded

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/protocol"
)

// choice is what the host has chosen for one call of the model.
type choice struct {
	model string      // "": the agent's own
	own   model.Model // the user's endpoint; nil: that of the backend
}

// choose asks the host which model makes a call, as qodercli does. purpose is main, subagent,
// compact or web_fetch. An answer that cannot be followed fails the call.
func (t *talk) choose(l *agent.Lane, s *agent.Strand, purpose string) (choice, error) {
	var c choice
	if !t.asksModel {
		return c, nil
	}
	name := t.unchosen(l)
	request := agent.Object{
		"type": "get_model_policy", "subtype": "get_model_policy", "sessionId": l.SessionID(), "purpose": purpose, "resolvedModel": name,
		"models": []any{agent.Object{"value": l.Model(), "displayName": l.Model()}},
	}
	if tokens := t.tokens(); tokens > 0 {
		request["estimatedInputTokens"] = tokens
		if window := t.window(name); window > 0 {
			request["contextUsage"] = min(float64(tokens)/float64(window), 1)
		}
	}
	if id := l.AgentID(); id != "" {
		request["agentId"], request["agentType"] = id, t.kind.name
	}
	answer, err := s.Ask(request, 0) // the host has a limit
	if err != nil {
		return c, err
	}
	var reply protocol.ModelPolicyReply
	if answer.OK {
		err = json.Unmarshal(answer.Body, &reply)
	}
	switch {
	case answer.Closed:
		err = errors.New("the host has gone")
	case !answer.OK:
		err = errors.New(answer.Error)
	case err == nil && reply.Model != nil && *reply.Model == "":
		err = errors.New("it names an empty model; nil keeps the agent's own")
	case err == nil && len(reply.Parameters) > 0:
		err = errors.New("it has parameters, which this agent does not pass on")
	}
	if err == nil && reply.Model != nil {
		c.model = *reply.Model
	}
	if err == nil && reply.CustomModel != nil {
		c.own, err = t.endpoint(reply.CustomModel)
	}
	if err != nil {
		return choice{}, &model.Error{Class: model.Invalid, RetryAfter: -1, Final: true, Message: "the host's choice of the model failed: " + err.Error()}
	}
	return c, nil
}

// from is where the request of a call goes.
func (t *talk) from(c choice) model.Model {
	if c.own != nil {
		return c.own
	}
	return t.cfg.Model
}

// endpoint is the user's. It has the API of the backend's: the conversation is encoded for that
// one.
func (t *talk) endpoint(c *protocol.CustomModel) (model.Model, error) {
	api := cmp.Or(c.Style, "openai")
	if have := t.log.codec.Name(); api != have {
		return nil, fmt.Errorf("the user's model has the API %q, and the conversation is in that of %q", api, have)
	}
	ref := model.Ref{API: api, URL: c.URL}
	switch {
	case c.URL != "":
		parsed, err := model.ParseRef(api + "+" + c.URL + "#x")
		if err != nil {
			return nil, err
		}
		ref.URL = parsed.URL
	case c.Provider == "anthropic":
		ref.URL = model.AnthropicURL
	case c.Provider == "openai":
		ref.URL = model.OpenAIURL
	default:
		return nil, fmt.Errorf("the address of the provider %q is not known: set URL of the custom model", c.Provider)
	}
	clock := t.seams.Clock
	return model.Open(ref, model.Config{
		Key:       func(context.Context) (string, error) { return c.APIKey, nil },
		Client:    t.shared.client(),
		AfterFunc: func(d time.Duration, fn func()) func() bool { return clock.AfterFunc(d, fn).Stop },
	}, t.cfg.Profiles), nil
}

// client makes requests to the endpoints of users.
func (s *shared) client() *http.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.http == nil {
		s.http = model.NewHTTPClient()
	}
	return s.http
}
