package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Values of [Policy].Default.
const (
	// DefaultAsk passes a call that matches no rule to CanUseTool, and denies it if there
	// is no callback. It is the zero value.
	DefaultAsk = policy.Ask
	// DefaultDeny denies a call that matches no rule.
	DefaultDeny = policy.Deny
	// DefaultAgent lets the agent decide about a call that matches no rule, by its
	// permission mode. It is a Warning.
	DefaultAgent = policy.Agent
)

// policyWarnings are about a policy that decides less than its rules suggest,
// or more than other options do.
func policyWarnings(o *Options, rules *policy.Policy) []Warning {
	var all []Warning
	for _, w := range rules.Warnings() {
		option, problem := inPolicy(w)
		all = append(all, Warning{Option: option, Rule: w.Rule, Problem: problem, Fix: w.Fix})
	}
	if o.Policy.Default == policy.Agent {
		all = append(all, Warning{Option: "Policy.Default", Rule: string(policy.Agent),
			Problem: "leaves calls that no rule names to the agent, which runs some without asking: commands that only read, reads in the working directory, subagents",
			Fix:     "leave it empty to ask about them, or use deny"})
		return all
	}
	if len(o.AllowedTools) > 0 {
		all = append(all, Warning{Option: "AllowedTools", Rule: o.AllowedTools[0],
			Problem: "allows nothing that the Policy does not allow", Fix: "put the rules into Policy.Allow"})
	}
	return all
}

const nobodyToAsk = "No rule of the host's policy allows this call, and there is nobody to ask."

// longWait is how long the policy's hook may wait for CanUseTool when
// Options.PermissionTimeout sets no limit. A hook cannot wait without one.
const longWait = 24 * time.Hour

// gatekeeper is a policy with a callback behind it.
type gatekeeper struct {
	policy  *policy.Policy
	ask     CanUseTool    // nil: no callback
	timeout time.Duration // of ask; 0: none
	blind   bool          // the links of the agent's machine cannot be followed
	calls   callDirectories
}

// hook decides about every call before the agent does, also about calls that
// the agent would not ask about.
func (g *gatekeeper) hook() Hook {
	return OnPreToolUse(func(ctx context.Context, in *PreToolUseInput) (PreToolUseOutput, error) {
		return g.verdict(ctx, in)
	}, Timeout(g.hookTimeout()))
}

// hookTimeout leaves the callback all of its time: a hook's handler has less
// than the hook, see [Timeout].
func (g *gatekeeper) hookTimeout() time.Duration {
	switch {
	case g.ask == nil:
		return 0
	case g.timeout == 0:
		return longWait
	}
	return g.timeout + min(g.timeout/9+1, time.Second)
}

// verdict is what the hook answers about a call. The zero output leaves the
// call to the agent.
func (g *gatekeeper) verdict(ctx context.Context, in *PreToolUseInput) (PreToolUseOutput, error) {
	call := policyCall(in.ToolName, in.ToolInput, in.MCPServer, in.Cwd)
	g.calls.note(in.ToolUseID, in.Cwd)
	why := g.policy.Explain(call)
	switch {
	case why.Behavior == protocol.BehaviorDeny:
		return DenyPreToolUse(denialBy(why)), nil
	case why.Behavior == protocol.BehaviorAllow && in.PermissionMode == ModeDontAsk && g.vouches(call):
		// Here the agent denies without asking what its own rules do not allow.
		return PreToolUseOutput{PermissionDecision: HookAllow, PermissionDecisionReason: why.String()}, nil
	case why.Behavior == protocol.BehaviorAllow, why.ByAgent:
		return PreToolUseOutput{}, nil
	case g.ask == nil:
		return DenyPreToolUse(nobodyToAsk), nil
	case in.ToolName == "AskUserQuestion" || in.ToolName == "ExitPlanMode":
		// The agent asks in every mode, or denies; the answer needs the request.
		return PreToolUseOutput{}, nil
	}
	switch in.PermissionMode {
	case ModeDontAsk:
		return DenyPreToolUse(fmt.Sprintf("The host's policy does not allow this call (%s), and in the permission mode dontAsk nobody is asked.", why)), nil
	case ModeDefault, ModeAcceptEdits:
		return PreToolUseOutput{PermissionDecision: HookAsk, PermissionDecisionReason: why.String()}, nil
	}
	return g.askHere(ctx, call, in, why)
}

// askHere asks the callback from within the hook. In the modes that let the
// agent decide about what its safety check found, such as a file below .git,
// it does so although a hook says ask: Claude Code 2.1.329 runs the call in
// bypassPermissions, and has its classifier decide in auto and plan (observed).
func (g *gatekeeper) askHere(ctx context.Context, call policy.Call, in *PreToolUseInput, why policy.Explanation) (PreToolUseOutput, error) {
	result, err := g.consult(ctx, call, &ToolPermissionRequest{
		ToolName: in.ToolName, Input: in.ToolInput, ToolUseID: in.ToolUseID, AgentID: in.AgentID, MCPServer: in.MCPServer, Cwd: in.Cwd,
		DecisionReason: why.String(), DecisionReasonType: "hook", DecisionReasonHookEvent: protocol.HookPreToolUse,
	})
	switch {
	case err != nil:
		return PreToolUseOutput{}, err
	case !result.Allowed():
		out := DenyPreToolUse(result.Message)
		if result.Interrupt {
			out.Continue, out.StopReason = Some(false), result.Message
		}
		return out, nil
	}
	return PreToolUseOutput{PermissionDecision: HookAllow, UpdatedInput: result.UpdatedInput}, nil
}

// consult asks the callback, and holds an input that it changed against the
// deny rules.
func (g *gatekeeper) consult(ctx context.Context, call policy.Call, r *ToolPermissionRequest) (PermissionResult, error) {
	result, err := g.ask(ctx, r)
	if err == nil && result.Allowed() && result.UpdatedInput != nil {
		call.Input = result.UpdatedInput
		if why := g.policy.Explain(call); why.Behavior == protocol.BehaviorDeny {
			return Deny(denialBy(why)), nil
		}
	}
	return result, err
}

// vouches reports whether a rule allows a call that the agent does not say any
// more about, such as that a link leads out of its directories.
func (g *gatekeeper) vouches(call policy.Call) bool {
	call.Outside = g.blind && call.Tool != "Bash" // the policy looks at the paths in a command itself
	why := g.policy.Explain(call)
	return why.Behavior == protocol.BehaviorAllow && why.Rule.Text != ""
}

// decide is the CanUseTool of a session with a policy.
func (g *gatekeeper) decide(ctx context.Context, r *ToolPermissionRequest) (PermissionResult, error) {
	r.Cwd = g.calls.of(r.ToolUseID)
	call := policyCall(r.ToolName, r.Input, r.MCPServer, r.Cwd)
	call.Outside, call.Blocked = r.DecisionReasonType == "workingDir", r.BlockedPath
	why := g.policy.Explain(call)
	switch {
	case why.Behavior == protocol.BehaviorDeny:
		return Deny(denialBy(why)), nil
	case why.Behavior == protocol.BehaviorAllow && !wantsPerson(r):
		return Allow(), nil
	case g.ask == nil:
		return Deny(nobodyToAsk), nil
	}
	return g.consult(ctx, call, r)
}

func policyCall(tool string, input []byte, server *protocol.MCPServerProvenance, dir string) policy.Call {
	c := policy.Call{Tool: tool, Input: input}
	if dir != "" {
		c.Cwd = slashed(dir)
	}
	if server != nil {
		c.MCPServer = server.Name
	}
	return c
}

func denialBy(why policy.Explanation) string {
	if why.Rule.Text == "" {
		return fmt.Sprintf("The host's policy denies this call: %s.", why.Reason)
	}
	return fmt.Sprintf("The host's policy denies this call by the rule %s.", why.Rule.Text)
}

// watch holds the input that a hook of the user's puts in place of the call's
// against the policy, before the agent gets it.
func (g *gatekeeper) watch(h Hook) Hook {
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
	if json.Unmarshal(raw, &o) != nil {
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
	if err != nil || said == HookDeny {
		return out, err
	}
	in := &PreToolUseInput{}
	if err := decodeInput(c.Input, in); err != nil {
		return nil, fmt.Errorf("input of hook %s: %w", protocol.HookPreToolUse, err)
	}
	in.ToolInput = input
	verdict, err := g.verdict(ctx, in)
	if err != nil {
		return nil, err
	}
	stricter := said == HookDefer || said == HookAsk
	if verdict.PermissionDecision == "" || stricter && verdict.PermissionDecision != HookDeny {
		return out, nil
	}
	raw, err := verdict.wire(protocol.HookPreToolUse).MarshalJSON()
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
func decisionIn(answer, specific object) (said HookPermission, err error) {
	if raw, given := specific["permissionDecision"]; given {
		if err := json.Unmarshal(raw, &said); err != nil {
			return "", fmt.Errorf("output of hook %s: permissionDecision: %w", protocol.HookPreToolUse, err)
		}
		return said, nil
	}
	if string(answer["decision"]) == `"block"` {
		said = HookDeny
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
	if err := decodeInput(c.Input, in); err != nil {
		return nil, fmt.Errorf("input of hook %s: %w", protocol.HookPermissionRequest, err)
	}
	if why := g.policy.Explain(policyCall(in.ToolName, input, in.MCPServer, in.Cwd)); why.Behavior == protocol.BehaviorDeny {
		denial := Deny(denialBy(why))
		return PermissionRequestOutput{Decision: &denial}.wire(protocol.HookPermissionRequest).MarshalJSON()
	}
	return out, nil
}
