package callback

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

const nobodyToAsk = "No rule of the host's policy allows this call, and there is nobody to ask."

// longWait is how long the policy's hook may wait for CanUseTool when
// Options.PermissionTimeout sets no limit. A hook cannot wait without one.
const longWait = 24 * time.Hour

// gatekeeper is a policy with a callback behind it.
type gatekeeper struct {
	policy  *policy.Policy
	ask     session.CanUseTool // nil if the options have no callback
	timeout time.Duration      // of ask; 0: none
	blind   bool               // the links of the agent's machine cannot be followed
	calls   callDirectories
	told    Told // or nil
}

// Told learns what a policy says of a call of a tool, by its id. An ask is not a decision: who is
// asked decides.
type Told func(id string, says protocol.PermissionBehavior, rule bool, why string)

// tell reports what a rule, or the rest of the policy, says of a call.
func (g *gatekeeper) tell(id string, says protocol.PermissionBehavior, why *policy.Explanation) {
	if g.told != nil && id != "" {
		g.told(id, says, why.Rule.Text != "" || len(why.Parts) > 0, why.String())
	}
}

// hook decides about every call before the agent does, also about calls that
// the agent would not ask about.
func (g *gatekeeper) hook() session.Hook {
	return session.Hook{Event: protocol.HookPreToolUse, Timeout: g.hookTimeout(), Func: func(ctx context.Context, c *session.HookCall) (json.RawMessage, error) {
		in := &protocol.PreToolUseInput{}
		if err := protocol.Unmarshal(c.Input, in); err != nil {
			return nil, fmt.Errorf("input of hook %s: %w", protocol.HookPreToolUse, err)
		}
		verdict, err := g.verdict(ctx, in)
		if err != nil {
			return nil, err
		}
		return verdict.output()
	}}
}

// hookTimeout leaves the callback all of its time: a hook's handler has less
// than the hook.
func (g *gatekeeper) hookTimeout() time.Duration {
	switch {
	case g.ask == nil:
		return 0
	case g.timeout == 0:
		return longWait
	}
	return g.timeout + min(g.timeout/9+1, time.Second)
}

// ruling is what the policy's hook answers about a call. The zero ruling leaves the call
// to the agent.
type ruling struct {
	protocol.PreToolUseOutput
	stop bool // the turn ends, for the same reason
}

func ruled(decision protocol.HookPermission, reason string) ruling {
	return ruling{PreToolUseOutput: protocol.PreToolUseOutput{PermissionDecision: decision, PermissionDecisionReason: reason}}
}

// output is the ruling as the agent reads it.
func (r ruling) output() (json.RawMessage, error) {
	var out protocol.HookJSONOutput
	if r.PermissionDecision != "" {
		out.Specific = &r.PreToolUseOutput
	}
	if r.stop {
		goOn := false
		out.Continue, out.StopReason = &goOn, r.PermissionDecisionReason
	}
	return out.MarshalJSON()
}

// verdict judges a call before the agent does.
func (g *gatekeeper) verdict(ctx context.Context, in *protocol.PreToolUseInput) (ruling, error) {
	call := policyCall(in.ToolName, in.ToolInput, in.MCPServer, in.Cwd)
	g.calls.note(in.ToolUseID, in.Cwd)
	why := g.policy.Explain(call)
	says := protocol.BehaviorAsk
	switch {
	case why.ByAgent:
		says = ""
	case why.Behavior == protocol.BehaviorAllow, why.Behavior == protocol.BehaviorDeny:
		says = why.Behavior
	case g.ask == nil, in.PermissionMode == protocol.ModeDontAsk:
		says = protocol.BehaviorDeny
	}
	if says != "" {
		g.tell(in.ToolUseID, says, &why)
	}
	switch {
	case why.Behavior == protocol.BehaviorDeny:
		return ruled(protocol.HookDeny, denialBy(why)), nil
	case why.Behavior == protocol.BehaviorAllow && in.PermissionMode == protocol.ModeDontAsk && g.vouches(call):
		// Here the agent denies without asking what its own rules do not allow.
		return ruled(protocol.HookAllow, why.String()), nil
	case why.Behavior == protocol.BehaviorAllow, why.ByAgent:
		return ruling{}, nil
	case g.ask == nil:
		return ruled(protocol.HookDeny, nobodyToAsk), nil
	case in.ToolName == "AskUserQuestion" || in.ToolName == "ExitPlanMode":
		// The agent asks in every mode, or denies; the answer needs the request.
		return ruling{}, nil
	}
	switch in.PermissionMode {
	case protocol.ModeDontAsk:
		return ruled(protocol.HookDeny, fmt.Sprintf("The host's policy does not allow this call (%s), and in the permission mode dontAsk nobody is asked.", why)), nil
	case protocol.ModeDefault, protocol.ModeAcceptEdits:
		return ruled(protocol.HookAsk, why.String()), nil
	}
	return g.askHere(ctx, call, in, why)
}

// askHere asks the callback from within the hook. In the modes that let the
// agent decide about what its safety check found, such as a file below .git,
// it does so although a hook says ask: Claude Code 2.1.329 runs the call in
// bypassPermissions, and has its classifier decide in auto and plan (observed).
func (g *gatekeeper) askHere(ctx context.Context, call policy.Call, in *protocol.PreToolUseInput, why policy.Explanation) (ruling, error) {
	result, err := g.consult(ctx, call, &protocol.CanUseToolRequest{
		ToolName: in.ToolName, Input: in.ToolInput, ToolUseID: in.ToolUseID, AgentID: in.AgentID, MCPServer: in.MCPServer, Cwd: in.Cwd,
		DecisionReason: why.String(), DecisionReasonType: "hook", DecisionReasonHookEvent: protocol.HookPreToolUse,
	})
	switch {
	case err != nil:
		return ruling{}, err
	case !result.Allowed():
		out := ruled(protocol.HookDeny, result.Message)
		out.stop = result.Interrupt
		return out, nil
	case result.UpdatedInput != nil && objectOf(result.UpdatedInput) == nil:
		return ruling{}, fmt.Errorf("output of hook %s: UpdatedInput is not a JSON object", protocol.HookPreToolUse)
	}
	out := ruled(protocol.HookAllow, "")
	out.UpdatedInput = result.UpdatedInput
	return out, nil
}

// consult asks the callback, and holds an input that it changed against the
// deny rules.
func (g *gatekeeper) consult(ctx context.Context, call policy.Call, r *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
	result, err := g.ask(ctx, r)
	if err == nil && result.Allowed() && result.UpdatedInput != nil {
		call.Input = result.UpdatedInput
		if why := g.policy.Explain(call); why.Behavior == protocol.BehaviorDeny {
			g.tell(r.ToolUseID, protocol.BehaviorDeny, &why)
			return denied(denialBy(why)), nil
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
func (g *gatekeeper) decide(ctx context.Context, r *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
	r.Cwd = g.calls.of(r.ToolUseID)
	call := policyCall(r.ToolName, r.Input, r.MCPServer, r.Cwd)
	call.Outside, call.Blocked = r.DecisionReasonType == "workingDir", r.BlockedPath
	why := g.policy.Explain(call)
	switch {
	case why.Behavior == protocol.BehaviorDeny:
		g.tell(r.ToolUseID, protocol.BehaviorDeny, &why)
		return denied(denialBy(why)), nil
	case why.Behavior == protocol.BehaviorAllow && !wantsPerson(r):
		g.tell(r.ToolUseID, protocol.BehaviorAllow, &why)
		return protocol.PermissionResult{Behavior: protocol.BehaviorAllow}, nil
	case g.ask == nil:
		g.tell(r.ToolUseID, protocol.BehaviorDeny, &why)
		return denied(nobodyToAsk), nil
	}
	g.tell(r.ToolUseID, protocol.BehaviorAsk, &why)
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

func denied(message string) protocol.PermissionResult {
	return protocol.PermissionResult{Behavior: protocol.BehaviorDeny, Message: message}
}

func denialBy(why policy.Explanation) string {
	if why.Rule.Text == "" {
		return fmt.Sprintf("The host's policy denies this call: %s.", why.Reason)
	}
	return fmt.Sprintf("The host's policy denies this call by the rule %s.", why.Rule.Text)
}

// wantsPerson reports whether a rule of the policy is not enough: the call is a question to
// a person, or another rule, hook, mode or safety check of the agent wants a person. Unknown
// reasons count as such.
func wantsPerson(r *protocol.CanUseToolRequest) bool {
	if r.RequiresUserInteraction || r.MatchedAskRule != nil || r.ClassifierApprovable != nil {
		return true
	}
	switch r.DecisionReasonType {
	case "", "other", "workingDir":
		return false
	case "subcommandResults":
		// Where an ask rule is about one of the commands the agent suggests no
		// rules (observed on Claude Code 2.1.329), and says no more.
		return len(r.Suggestions()) == 0
	case "rule":
		return !r.ServerPolicyAskOnly
	}
	return true
}

// callDirectories are the directories of the latest tool calls. The agent sends the
// directory of a call to a PreToolUse hook, and not to CanUseTool. Hooks note them
// while other callbacks read them.
type callDirectories struct {
	noted atomic.Uint32 // calls so far
	calls [32]atomic.Pointer[callDirectory]
}

type callDirectory struct{ id, dir string }

func (d *callDirectories) note(id, dir string) {
	if id != "" {
		d.calls[(d.noted.Add(1)-1)%uint32(len(d.calls))].Store(&callDirectory{id, dir})
	}
}

// of is the directory of a call, "" when it is not known.
func (d *callDirectories) of(id string) string {
	latest := d.noted.Load()
	for i := range uint32(len(d.calls)) { // the latest first
		if call := d.calls[(latest-1-i)%uint32(len(d.calls))].Load(); call != nil && call.id == id {
			return call.dir
		}
	}
	return ""
}
