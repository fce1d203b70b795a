package callback

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// watch holds the input that a hook of the user's puts in place of the call's
// against the policy, before the agent gets it.
func (g *gatekeeper) watch(h session.Hook) session.Hook {
	run := h.Func
	if run == nil {
		return h
	}
	switch h.Event {
	case protocol.HookPreToolUse:
		h.Func = func(ctx context.Context, c *session.HookCall) (json.RawMessage, error) {
			out, err := run(ctx, c)
			if err != nil {
				return out, err
			}
			return g.changed(ctx, c, out)
		}
	case protocol.HookPermissionRequest:
		h.Func = func(ctx context.Context, c *session.HookCall) (json.RawMessage, error) {
			out, err := run(ctx, c)
			if err != nil {
				return out, err
			}
			return g.permitted(c, out)
		}
	}
	return h
}

// object is a JSON object by its exact keys, as the agent reads it.
type object map[string]json.RawMessage

// objectOf is nil when raw is not an object.
func objectOf(raw json.RawMessage) object {
	var o object
	if protocol.Unmarshal(raw, &o) != nil {
		return nil
	}
	return o
}

const specificKey = "hookSpecificOutput"

// changed is the output of a PreToolUse hook, made as strict as the policy is
// about the input in it.
func (g *gatekeeper) changed(ctx context.Context, c *session.HookCall, out json.RawMessage) (json.RawMessage, error) {
	answer := objectOf(out)
	specific := objectOf(answer[specificKey])
	input, given := specific["updatedInput"]
	if !given || string(input) == "null" || string(answer["async"]) == "true" {
		return out, nil
	}
	said, err := decisionIn(answer, specific)
	if err != nil || said == protocol.HookDeny {
		return out, err
	}
	in := &protocol.PreToolUseInput{}
	if err := protocol.Unmarshal(c.Input, in); err != nil {
		return nil, fmt.Errorf("input of hook %s: %w", protocol.HookPreToolUse, err)
	}
	in.ToolInput = input
	verdict, err := g.verdict(ctx, in)
	if err != nil {
		return nil, err
	}
	stricter := said == protocol.HookDefer || said == protocol.HookAsk
	if verdict.PermissionDecision == "" || stricter && verdict.PermissionDecision != protocol.HookDeny {
		return out, nil
	}
	raw, err := verdict.output()
	if err != nil {
		return nil, err
	}
	decided := objectOf(raw)
	maps.Copy(specific, objectOf(decided[specificKey]))
	if decided[specificKey], err = json.Marshal(specific); err != nil {
		return nil, err
	}
	delete(answer, "decision")
	maps.Copy(answer, decided)
	return json.Marshal(answer)
}

// decisionIn is the decision of a PreToolUse hook, also in its older form.
func decisionIn(answer, specific object) (said protocol.HookPermission, err error) {
	if raw, given := specific["permissionDecision"]; given {
		if err := protocol.Unmarshal(raw, &said); err != nil {
			return "", fmt.Errorf("output of hook %s: permissionDecision: %w", protocol.HookPreToolUse, err)
		}
		return said, nil
	}
	if string(answer["decision"]) == `"block"` {
		said = protocol.HookDeny
	}
	return said, nil
}

// permitted is the output of a PermissionRequest hook, or a denial when it
// allows an input that the policy denies.
func (g *gatekeeper) permitted(c *session.HookCall, out json.RawMessage) (json.RawMessage, error) {
	input, given := objectOf(objectOf(objectOf(out)[specificKey])["decision"])["updatedInput"]
	if !given || string(input) == "null" {
		return out, nil
	}
	in := &protocol.PermissionRequestInput{}
	if err := protocol.Unmarshal(c.Input, in); err != nil {
		return nil, fmt.Errorf("input of hook %s: %w", protocol.HookPermissionRequest, err)
	}
	if why := g.policy.Explain(policyCall(in.ToolName, input, in.MCPServer, in.Cwd)); why.Behavior == protocol.BehaviorDeny {
		return protocol.HookJSONOutput{Specific: &protocol.PermissionRequestOutput{Decision: denied(denialBy(why))}}.MarshalJSON()
	}
	return out, nil
}
