package permission

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/agent-troupe/troupe/actors/dispatch"
	"github.com/agent-troupe/troupe/actors/ledger"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// New returns the actor. limit zero means none: a person may be asleep.
func New(l *ledger.Ledger, d dialect.Dialect, decide session.CanUseTool, limit time.Duration, changed func(*kernel.Worker)) *dispatch.Actor {
	prepare := func(r *ledger.Request) (dispatch.Job, error) {
		job := dispatch.Job{Limit: limit, SetBy: "PermissionTimeout"}
		req, err := protocol.DecodeAgentRequest(r.Frame)
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
	return &dispatch.Actor{Kind: session.KindPermission, Ledger: l, Prepare: prepare, Changed: changed}
}
