package main

import (
	"cmp"
	"context"

	"github.com/agent-troupe/troupe/sdk"
)

// reviewer denies every call until the plan is approved.
type reviewer struct{ person *person }

func (r *reviewer) decide(ctx context.Context, ask *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
	plan, ok := sdk.PlanOf(ask)
	if !ok {
		return sdk.Deny("Only what the plan's approval covers is allowed."), nil
	}
	text := cmp.Or(plan.Text, "(The agent shows no plan.)")
	answer, there := r.person.asked(ctx, text+"\nis this the plan? (yes, or what to change)")
	switch {
	case !there:
		return sdk.DenyAndStop("Nobody is there to approve a plan."), nil
	case answer == "y" || answer == "yes":
		return sdk.ApprovePlan(sdk.ModeAcceptEdits), nil
	}
	return sdk.Deny("The user wants the plan changed: " + answer), nil
}
