package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/actors/hooks"
	"github.com/agent-troupe/troupe/base/jsonscan"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Hook is a callback that the agent calls at a defined point of its work, such as
// before a tool call. Make one with [OnPreToolUse] and the other functions whose names
// begin with On. It is [session.Hook], whose comment says what happens when a hook
// fails, and when an event has several hooks.
type Hook = session.Hook

// HookOption is an option of one hook.
type HookOption func(*Hook)

// Match limits a hook to the tools that pattern matches. For an event without a tool,
// pattern matches the event's source, trigger or type. "" and "*" match everything.
//
// A list of names ("Bash|Write", "mcp__tracker") matches each name as a whole; the
// name of an MCP server matches all its tools. A name that no tool is known by is a
// [session.Warning]. Any other pattern is a regular expression of package regexp, which may
// match anywhere in the name ("^mcp__.*__delete", "(?i)bash"). Troupe does the
// matching, not the agent. A pattern that package regexp rejects is a *[ConfigError].
func Match(pattern string) HookOption { return func(h *Hook) { h.Matcher = pattern } }

// Timeout sets how long the agent waits for the hook. Without it, or with 0, the
// agent waits 60 s. The handler's context ends a tenth of the time earlier, at most a
// second, so that the answer to a handler that took too long still arrives in time.
func Timeout(d time.Duration) HookOption { return func(h *Hook) { h.Timeout = d } }

// OnFailure sets whether the guarded action proceeds if the hook fails. Use
// ContinueOnFailure only for handlers that observe: with it the hook no longer protects
// anything. After a failed hook for Stop, SubagentStop, TaskCompleted or TeammateIdle,
// the agent always continues. Claude.
func OnFailure(a session.FailureAction) HookOption { return func(h *Hook) { h.OnFailure = a } }

// OnHookEvent makes a hook for the event called name, also for an event that this
// package does not know. The handler returns the vendor's hook output object as JSON;
// nil lets the agent continue. For a gate, an output that is not a JSON object counts
// as a failure.
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

// Decode decodes JSON of the agent, such as a tool's input, into v. Keys match only by
// their exact name, as they do in the agent. (encoding/json ignores case: a gate could
// then check the key Command, while the tool uses the key command.) If a key occurs
// twice, the last value counts. A field of v without a name in a json tag is an error.
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

// hookWarnings are about matchers that the agent does not compare, and names in matchers that nothing has.
func hookWarnings(o *Options) []session.Warning {
	var all []session.Warning
	for i := range o.Hooks {
		h := &o.Hooks[i]
		at := fmt.Sprintf("Hooks[%d].Match", i)
		if h.Matcher != "" && h.Matcher != "*" && hooks.Ignored(h.Event) {
			all = append(all, session.Warning{Option: at, Rule: h.Matcher,
				Problem: fmt.Sprintf("has no effect: %s has nothing that a matcher is compared with, so the hook is called each time", h.Event),
				Fix:     "leave it out, and decide in the handler"})
			continue
		}
		for _, name := range hooks.Unknown(h.Event, h.Matcher) {
			w := session.Warning{Option: at, Rule: h.Matcher,
				Problem: fmt.Sprintf("%q is compared as a whole, and no tool is known by that name: no call reaches the %s hook through it", name, h.Event),
				Fix:     fmt.Sprintf("write the name of a tool, such as Bash or mcp__server__tool, or (?i)%s.* for every tool whose name contains it", name)}
			if words := hooks.Subjects(h.Event); words != nil {
				w.Problem = fmt.Sprintf("%q is compared as a whole, and %s has no such word: the hook is not called through it", name, h.Event)
				w.Fix = "write one of " + strings.Join(words, ", ")
			}
			all = append(all, w)
		}
	}
	return all
}

// usable finds outputs of a typed hook that no agent accepts. An agent might read such
// an output as no decision, and the gate would let a call through that its handler
// meant to stop.
func usable(out protocol.HookJSONOutput) error {
	if err := oneOf("Decision", out.Decision, protocol.DecisionApprove, protocol.DecisionBlock); err != nil {
		return err
	}
	switch s := out.Specific.(type) {
	case *protocol.PreToolUseOutput:
		if err := oneOf("PermissionDecision", s.PermissionDecision, protocol.HookAllow, protocol.HookDeny, protocol.HookAsk, protocol.HookDefer); err != nil {
			return err
		}
		return objectIn("UpdatedInput", s.UpdatedInput)
	case *protocol.PreModelSwitchOutput:
		return oneOf("PermissionDecision", s.PermissionDecision, protocol.HookAllow, protocol.HookDeny, protocol.HookAsk)
	case *protocol.PermissionRequestOutput:
		return objectIn("Decision.UpdatedInput", s.Decision.UpdatedInput)
	case *protocol.ElicitationOutput:
		return oneOf("Action", s.Action, protocol.ElicitAccept, protocol.ElicitDecline, protocol.ElicitCancel)
	}
	return nil
}

func oneOf[S ~string](field string, value S, all ...S) error {
	if value == "" || slices.Contains(all, value) {
		return nil
	}
	names := make([]string, len(all))
	for i, one := range all {
		names[i] = string(one)
	}
	return fmt.Errorf("%s is %q; it can be %s, or empty", field, value, strings.Join(names, ", "))
}

func objectIn(field string, value json.RawMessage) error {
	if value == nil || jsonscan.Valid(value) && bytes.HasPrefix(bytes.TrimSpace(value), []byte("{")) {
		return nil
	}
	return fmt.Errorf("%s is not a JSON object", field)
}
