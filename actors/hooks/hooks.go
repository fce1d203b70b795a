package hooks

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/agent-troupe/troupe/actors/dispatch"
	"github.com/agent-troupe/troupe/actors/ledger"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/protocol"
)

// DefaultTimeout is how long a hook may take when nothing else is said.
const DefaultTimeout = 60 * time.Second

// Call is one firing of a hook.
type Call struct {
	Event     protocol.HookEvent
	Input     json.RawMessage // the event's input, as it came
	ToolUseID string          // a random id for events that belong to no tool
}

// Func handles a hook. A nil answer means "go on". Its context ends when the
// agent no longer wants the answer. It may be called many times at once.
type Func func(ctx context.Context, c *Call) (json.RawMessage, error)

// Hook is a registered hook.
type Hook struct {
	Event   protocol.HookEvent
	Matcher string        // regular expression over tool names; empty: all
	Timeout time.Duration // zero: 60 s
	Func    Func
}

// CallbackID names the i-th hook on the wire.
func CallbackID(i int) string { return fmt.Sprintf("hook_%d", i) }

// Registrations is what the initialize call says of the hooks.
func Registrations(all []Hook) []dialect.HookRegistration {
	regs := make([]dialect.HookRegistration, len(all))
	for i, h := range all {
		regs[i] = dialect.HookRegistration{
			Event: h.Event, Matcher: h.Matcher, Timeout: h.Timeout, CallbackIDs: []string{CallbackID(i)},
		}
	}
	return regs
}

// HostLimit is the deadline on this side: a little less than what the agent
// was told, so that our own deny arrives before the agent stops waiting.
func HostLimit(t time.Duration) time.Duration {
	if t <= 0 {
		t = DefaultTimeout
	}
	return t - min(t/10, time.Second)
}

// New returns the actor.
func New(l *ledger.Ledger, all []Hook, changed func()) *dispatch.Actor {
	byID := make(map[string]*Hook, len(all))
	for i := range all {
		byID[CallbackID(i)] = &all[i]
	}
	prepare := func(r *ledger.Request) (dispatch.Job, error) {
		req, err := protocol.DecodeAgentRequest(r.Frame)
		if err != nil {
			return dispatch.Job{}, fmt.Errorf("hook_callback request: %w", err)
		}
		ask, ok := req.(*protocol.HookCallbackRequest)
		if !ok {
			return dispatch.Job{}, fmt.Errorf("hook_callback request: decoded as %T", req)
		}
		hook := byID[ask.CallbackID]
		if hook == nil {
			return dispatch.Job{Name: ask.CallbackID}, unknownHook(ask.CallbackID)
		}
		call := &Call{Event: hook.Event, Input: ask.Input, ToolUseID: ask.ToolUseID}
		return dispatch.Job{
			Name: string(hook.Event), Limit: HostLimit(hook.Timeout), SetBy: "the hook's Timeout",
			Run: func(ctx context.Context) (json.RawMessage, error) {
				out, err := hook.Func(ctx, call)
				if err != nil {
					return nil, err // whatever was answered beside it: a gate that fails denies
				}
				if out == nil {
					out = json.RawMessage("{}")
				}
				return out, nil
			},
		}, nil
	}
	return &dispatch.Actor{Kind: ledger.Hook, Ledger: l, Prepare: prepare, Changed: changed}
}

// EventOf tells which event a hook_callback request belongs to: what was
// registered under its id, else what its input says.
func EventOf(all []Hook, r *ledger.Request) protocol.HookEvent {
	req, err := protocol.DecodeAgentRequest(r.Frame)
	ask, ok := req.(*protocol.HookCallbackRequest)
	if err != nil || !ok {
		return protocol.HookPreToolUse // unreadable: treat it as the strictest gate
	}
	for i := range all {
		if CallbackID(i) == ask.CallbackID {
			return all[i].Event
		}
	}
	var input struct {
		Event protocol.HookEvent `json:"hook_event_name"`
	}
	if json.Unmarshal(ask.Input, &input) != nil || input.Event == "" {
		return protocol.HookPreToolUse
	}
	return input.Event
}

func unknownHook(id string) error {
	return &dispatch.Spoken{
		Reason: "No hook callback found for ID: " + id,
		Err:    fmt.Errorf("the agent called hook %q, which was never registered", id),
	}
}
