package fleet

import (
	"context"
	"time"

	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/sdk"
)

func denyAll(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
	return sdk.Deny("Nobody is there to allow it."), nil
}

// permit sets who decides about the calls of an attempt: a policy with the rules of AllowedTools,
// unless the options have one, and a person for what it asks about.
func (r *runner) permit(a *attempt) error {
	o, approvals := a.opts, r.job.Approvals
	if problem := approvals.contradicted(o); problem != nil {
		return problem
	}
	byRules := func(otherwise policy.Default) {
		o.Policy = &policy.Rules{Allow: o.AllowedTools, Default: otherwise}
		o.AllowedTools = nil
	}
	if p := o.Policy; p != nil && p.Default == policy.Ask && approvals == nil && !r.job.Attended && o.CanUseTool == nil && o.PermissionPromptToolName == "" {
		denying := *p // no person can be asked: calls that no rule names are denied, as without a policy
		denying.Default = policy.Deny
		o.Policy = &denying
	}
	// Without a policy only calls that the agent itself asks about would reach a person.
	switch {
	case approvals != nil && o.Policy == nil && !overACP(o):
		byRules(policy.Ask)
	case approvals != nil || r.job.Attended || o.Policy != nil || o.CanUseTool != nil || o.PermissionPromptToolName != "":
	case overACP(o):
		o.CanUseTool = denyAll
	default:
		byRules(policy.Deny)
	}
	if approvals != nil {
		o.CanUseTool = func(ctx context.Context, req *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			return r.ask(ctx, a, req)
		}
		if o.PermissionTimeout == 0 {
			o.PermissionTimeout = max(approvals.hold(), 0) + time.Minute // it is not to decide
		}
	}
	return nil
}

// contradicted finds options with which calls would run, or be answered, before a person is asked.
func (a *Approvals) contradicted(o *sdk.Options) error {
	switch {
	case a == nil:
		return nil
	case o.CanUseTool != nil || o.PermissionPromptToolName != "":
		return &sdk.ConfigError{Option: "Approvals", Problem: "contradicts Options.CanUseTool or PermissionPromptToolName, which answer first", Fix: "set one of them"}
	case o.Policy != nil && o.Policy.Default == policy.Agent:
		return &sdk.ConfigError{Option: "Approvals", Problem: "contradicts Policy.Default agent: the agent would run calls without asking", Fix: "set Policy.Default to ask"}
	}
	return nil
}
