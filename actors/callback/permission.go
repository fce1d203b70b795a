package callback

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// PreparePermission returns the function that turns requests into calls of the options'
// CanUseTool, with their limit for it.
func PreparePermission(d dialect.Dialect, o *session.Options) Prepare {
	decide := o.CanUseTool
	limit, setBy := o.PersonLimit()
	return func(r *Request) (Job, error) {
		job := Job{Limit: limit, SetBy: setBy}
		req, err := protocol.DecodeAgentRequest(*r.Frame)
		if err != nil {
			return job, fmt.Errorf("can_use_tool request: %w", err)
		}
		ask, ok := req.(*protocol.CanUseToolRequest)
		if !ok {
			return job, fmt.Errorf("can_use_tool request: decoded as %T", req)
		}
		job.Name = ask.ToolName
		if decide == nil {
			return job, session.ErrNoCanUseTool
		}
		job.Run = func(ctx context.Context) (json.RawMessage, error) {
			result, err := decide(ctx, ask)
			if err != nil {
				return nil, err
			}
			return d.PermissionAnswer(ask, result)
		}
		return job, nil
	}
}

// PermissionDenial denies a request whose callback gave no answer.
func PermissionDenial(d dialect.Dialect, f protocol.Frame, reason string) (response []byte, errText string) {
	req, _ := protocol.DecodeAgentRequest(f)
	ask, ok := req.(*protocol.CanUseToolRequest)
	if !ok {
		ask = &protocol.CanUseToolRequest{}
	}
	return d.PermissionFailure(ask, reason), ""
}
