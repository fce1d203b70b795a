package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/agent-troupe/troupe/actors/hooks"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Hook is a callback at a moment of the agent's work. Make one with
// [OnPreToolUse] and the other functions that begin with On. It is
// [session.Hook], which says what happens when it fails, and when an event has several.
type Hook = session.Hook

// HookOption is an option of one hook.
type HookOption func(*Hook)

// Match limits a hook to the tools that the pattern matches, or, for an event
// without a tool, to its source, trigger or type. "" and "*" match all.
//
// A list of names ("Bash|Write", "mcp__tracker") matches each name as a whole,
// and the name of an MCP server matches all its tools. Everything else is a
// regular expression of package regexp, which may match anywhere in the name
// ("^mcp__.*__delete", "(?i)bash"). Troupe compares it: what the agent's own
// engine would make of the pattern does not matter. A pattern that package
// regexp does not take is a *[ConfigError].
func Match(pattern string) HookOption { return func(h *Hook) { h.Matcher = pattern } }

// Timeout is how long the agent waits for the hook; default: 60 s. The handler
// gets a tenth less, at most a second, so that its own denial is in time.
func Timeout(d time.Duration) HookOption { return func(h *Hook) { h.Timeout = d } }

// FailureAction says what happens to what a hook guards when the hook fails.
// It is [session.FailureAction].
type FailureAction = session.FailureAction

// Values of [FailureAction].
const (
	BlockOnFailure    = session.BlockOnFailure
	ContinueOnFailure = session.ContinueOnFailure
)

// OnFailure says whether the guarded action proceeds if the hook fails. With
// ContinueOnFailure the hook no longer blocks: use it for handlers that only watch. Stop,
// SubagentStop, TaskCompleted and TeammateIdle always go on. Claude.
func OnFailure(a FailureAction) HookOption { return func(h *Hook) { h.OnFailure = a } }

// OnHookEvent hooks any event by its name, also one that this package does not
// know. The handler returns a hook output object of the vendor's; nil goes on. Of
// a gate, what is no JSON object is a failure.
func OnHookEvent(name string, h func(context.Context, *session.HookCall) (json.RawMessage, error), o ...HookOption) Hook {
	return newHook(protocol.HookEvent(name), h, o)
}

func newHook(event protocol.HookEvent, run func(context.Context, *session.HookCall) (json.RawMessage, error), o []HookOption) Hook {
	h := Hook{Event: event, Func: run}
	for _, set := range o {
		set(&h)
	}
	return h
}

// hookOutput is an output in the protocol's terms.
type hookOutput interface {
	wire(protocol.HookEvent) protocol.HookJSONOutput
}

// typed makes a hook of a handler with typed input and output.
func typed[In any, Out hookOutput](event protocol.HookEvent, h func(context.Context, *In) (Out, error), o []HookOption) Hook {
	if h == nil {
		return newHook(event, nil, o)
	}
	return newHook(event, func(ctx context.Context, c *session.HookCall) (json.RawMessage, error) {
		in := new(In)
		if err := decodeInput(c.Input, in); err != nil {
			return nil, fmt.Errorf("input of hook %s: %w", event, err)
		}
		out, err := h(ctx, in)
		if err != nil {
			return nil, err
		}
		answer := out.wire(event)
		if err := usable(answer); err != nil {
			return nil, fmt.Errorf("output of hook %s: %w", event, err)
		}
		return answer.MarshalJSON()
	}, o)
}

// Decode decodes JSON of the agent, such as a tool's input, by the exact names of
// its keys. encoding/json ignores case, and would show a gate Command where the
// tool runs command. Of a key that comes twice the last one counts. A field of v
// without a name in a json tag is an error.
func Decode(data json.RawMessage, v any) error { return protocol.Decode(data, v) }

// decodeInput decodes a part of a request, which is valid JSON.
func decodeInput(valid json.RawMessage, in any) error {
	if u, ok := in.(json.Unmarshaler); ok {
		return u.UnmarshalJSON(valid)
	}
	return protocol.Unmarshal(valid, in)
}

// hookProblem is what is wrong with the i-th hook, nil if nothing is.
func hookProblem(h *Hook, i int) error {
	at := fmt.Sprintf("Hooks[%d]", i)
	switch err := hooks.CheckPattern(h.Event, h.Matcher); {
	case h.Event == "" && h.Func == nil:
		return &ConfigError{Option: at, Problem: "is the zero Hook", Fix: "make it with sdk.OnPreToolUse, another On function, or sdk.OnHookEvent"}
	case h.Func == nil:
		return &ConfigError{Option: at, Problem: fmt.Sprintf("has no handler for %s", h.Event), Fix: "pass a function"}
	case err != nil:
		return &ConfigError{Option: at + ".Match", Problem: err.Error(), Fix: "fix the pattern, or match in the handler"}
	}
	return nil
}
