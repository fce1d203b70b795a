package hooks

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/actors/callback"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// DefaultTimeout is how long a hook may take if it has no Timeout.
const DefaultTimeout = 60 * time.Second

// CallbackID returns the callback id of the i-th hook.
func CallbackID(i int) string { return idPrefix + strconv.Itoa(i) }

const idPrefix = "hook_" // the vendors'

// Registrations returns the hooks as the initialize request registers them. If [Proves]
// needs it, Troupe's own hook is the last.
func Registrations(d dialect.Dialect, all []session.Hook) []dialect.HookRegistration {
	regs := make([]dialect.HookRegistration, len(all), len(all)+1)
	for i, m := range matchers(all) {
		h := all[i]
		regs[i] = dialect.HookRegistration{
			Event: h.Event, Matcher: m.wire, Timeout: h.Timeout, OnFailure: h.OnFailure, CallbackIDs: []string{CallbackID(i)},
		}
	}
	if ownProof(d, all) {
		regs = append(regs, dialect.HookRegistration{Event: protocol.HookUserPromptSubmit, CallbackIDs: []string{CallbackID(len(all))}})
	}
	return regs
}

// HostLimit returns the time limit of the handler for a hook with timeout t. It is a
// little shorter than the agent's, so that Troupe's denial arrives before the agent stops
// waiting.
func HostLimit(t time.Duration) time.Duration {
	if t <= 0 {
		t = DefaultTimeout
	}
	return t - min(t/10, time.Second)
}

// registered is the index of the hook with a callback id, len(all) for the session's
// own, or -1.
func registered(d dialect.Dialect, all []session.Hook, id string) int {
	i, err := strconv.Atoi(strings.TrimPrefix(id, idPrefix))
	if err != nil || i < 0 || i > len(all) || i == len(all) && !ownProof(d, all) || CallbackID(i) != id {
		return -1
	}
	return i
}

// matchers are those of the hooks. One that cannot be compared matches
// everything.
func matchers(all []session.Hook) []matcher {
	out := make([]matcher, len(all))
	for i, h := range all {
		out[i], _ = compile(h.Event, h.Matcher)
	}
	return out
}

// noOpinion is the answer of a hook that the call does not match.
func noOpinion(context.Context) (json.RawMessage, error) { return json.RawMessage("{}"), nil }

// Prepare returns the function that turns requests into calls of the hooks.
func Prepare(d dialect.Dialect, all []session.Hook) callback.Prepare {
	match := matchers(all)
	return func(r *callback.Request) (callback.Job, error) {
		req, err := protocol.DecodeAgentRequest(*r.Frame)
		if err != nil {
			return callback.Job{}, fmt.Errorf("hook_callback request: %w", err)
		}
		ask, ok := req.(*protocol.HookCallbackRequest)
		if !ok {
			return callback.Job{}, fmt.Errorf("hook_callback request: decoded as %T", req)
		}
		i := registered(d, all, ask.CallbackID)
		switch i {
		case -1:
			return callback.Job{Name: ask.CallbackID}, unknownHook(d, ask.CallbackID)
		case len(all):
			return callback.Job{Name: string(protocol.HookUserPromptSubmit), Run: noOpinion}, nil
		}
		hook := &all[i]
		if !match[i].matches(hook.Event, ask.Input) {
			return callback.Job{Name: string(hook.Event), Run: noOpinion}, nil
		}
		call := &session.HookCall{Event: hook.Event, Input: ask.Input, ToolUseID: ask.ToolUseID}
		return callback.Job{
			Name: string(hook.Event), Limit: HostLimit(hook.Timeout), SetBy: "the hook's Timeout",
			Run: func(ctx context.Context) (json.RawMessage, error) {
				out, err := hook.Func(ctx, call)
				if err != nil {
					return nil, err // whatever was answered beside it: a gate that fails denies
				}
				if out == nil {
					return json.RawMessage("{}"), nil
				}
				// An agent may ignore an output that is not an object.
				if isObject(out) {
					if err := contradiction(out); err != nil {
						return nil, fmt.Errorf("the output of hook %s: %w", hook.Event, err)
					}
					return out, nil
				}
				if _, open := d.HookFailure(hook.Event, ""); open == "" {
					return nil, fmt.Errorf("the output of hook %s is not a JSON object", hook.Event)
				}
				return out, nil
			},
		}, nil
	}
}

// isObject reports whether the output of a hook begins like an object. Null does not:
// Claude Code 2.1.329 denies for it (observed), another agent may continue.
func isObject(out json.RawMessage) bool {
	return bytes.HasPrefix(bytes.TrimSpace(out), []byte("{"))
}

// Denial returns the answer for a hook that gave no answer. Gates deny. Other hooks answer
// with reason as an error, which the agent handles as the hook's registration says.
func Denial(d dialect.Dialect, all []session.Hook, f protocol.Frame, reason string) (response []byte, errText string) {
	req, err := protocol.DecodeAgentRequest(f)
	ask, ok := req.(*protocol.HookCallbackRequest)
	event := protocol.HookPreToolUse // unreadable: treat it as the strictest gate
	if err == nil && ok {
		i := registered(d, all, ask.CallbackID)
		switch {
		case i < 0:
			event = eventOf(ask)
		case i == len(all):
			return json.RawMessage("{}"), "" // it guards nothing
		case all[i].OnFailure == session.ContinueOnFailure:
			return nil, reason
		default:
			event = all[i].Event
		}
	}
	response, errText = d.HookFailure(event, reason)
	return response, errText
}

// eventOf is the event that a request names.
func eventOf(ask *protocol.HookCallbackRequest) protocol.HookEvent {
	var input struct {
		Event protocol.HookEvent `json:"hook_event_name"`
	}
	if protocol.Unmarshal(ask.Input, &input) != nil || input.Event == "" {
		return protocol.HookPreToolUse
	}
	return input.Event
}

func unknownHook(d dialect.Dialect, id string) error {
	return &callback.PublicError{
		Reason: d.Traits().UnknownHook + id,
		Err:    fmt.Errorf("the agent called hook %q, which was never registered", id),
	}
}
