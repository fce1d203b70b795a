package claude

import "github.com/agent-troupe/troupe/dialect"

// rerunEnv has a resumed session run its interrupted turn again. It does not wait for initialize: with the request
// half a second late, a tool ran with no hook asked.
const rerunEnv = "CLAUDE_CODE_RESUME_INTERRUPTED_TURN"

// Resume implements dialect.Dialect.
func (Dialect) Resume(o *dialect.Input, sessionID string, rerun bool) (*dialect.Input, error) {
	next := o.Resumed(sessionID)
	if rerun {
		next.SetEnv(rerunEnv, "1")
	}
	return next, nil
}
