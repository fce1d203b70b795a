package sdk

import (
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/policy"
)

// unattendedProblem lists the callbacks and options that could wait for a person in an
// unattended session. The tools that ask a person are denied at once by default, but a
// task that needs them should not start.
func unattendedProblem(o *Options) error {
	if !o.Unattended || o.CanUseTool != nil || o.PermissionPromptToolName != "" {
		return nil
	}
	var open []string
	if o.Policy == nil || o.Policy.Default != policy.Deny {
		open = append(open, "calls that no rule names")
		for _, tool := range []string{"AskUserQuestion", "ExitPlanMode"} {
			if !slices.Contains(o.DisallowedTools, tool) && (o.Policy == nil || !slices.Contains(o.Policy.Deny, tool)) {
				open = append(open, tool)
			}
		}
	}
	if o.Policy != nil {
		for _, rule := range o.Policy.Ask {
			open = append(open, "the ask rule "+rule)
		}
	}
	if len(open) == 0 {
		return nil
	}
	return &ConfigError{
		Option: "Unattended", Problem: "these calls may ask a person, and nothing answers instead: " + strings.Join(open, ", "),
		Fix: "set Policy.Default to deny and make ask rules deny rules, or set CanUseTool",
	}
}
