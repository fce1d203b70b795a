package permission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/agent-troupe/troupe/actors/dispatch"
	"github.com/agent-troupe/troupe/actors/ledger"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
)

// Func decides whether a tool may run. The zero result is a deny. Its context
// ends when the agent no longer wants the decision. It may be called many
// times at once.
type Func func(ctx context.Context, r *protocol.CanUseToolRequest) (protocol.PermissionResult, error)

// ErrNoCallback says that the agent asked although nobody was named to decide.
var ErrNoCallback = errors.New("the agent asked for permission, and no CanUseTool callback is configured")

// New returns the actor. limit zero means none: a person may be asleep.
func New(l *ledger.Ledger, d dialect.Dialect, decide Func, limit time.Duration, changed func(*kernel.Worker)) *dispatch.Actor {
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
			return job, ErrNoCallback
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
	return &dispatch.Actor{Kind: ledger.Permission, Ledger: l, Prepare: prepare, Changed: changed}
}
