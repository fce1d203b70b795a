package qoder

import (
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/session"
)

// Resume implements dialect.Dialect.
func (Dialect) Resume(o *dialect.Input, sessionID string, rerun bool) (*dialect.Input, error) {
	if rerun {
		return nil, &session.UnsupportedCapabilityError{Backend: Name, Request: "re-run of an interrupted turn"}
	}
	return o.Resumed(sessionID), nil
}
