package session

import (
	"time"

	"github.com/agent-troupe/troupe/policy"
)

// PersonLimit is how long a callback may take that answers in the place of a person, and
// the option that says so; 0: there is no limit.
func (o *Options) PersonLimit() (limit time.Duration, setBy string) {
	if o.PermissionTimeout == 0 && o.Unattended {
		return time.Minute, "Unattended"
	}
	return o.PermissionTimeout, "PermissionTimeout"
}

// HasPolicy reports whether the policy decides about every call, so that no rule or
// mode of the agent allows a call that the policy does not.
func (o *Options) HasPolicy() bool { return o.Policy != nil && o.Policy.Default != policy.Agent }
