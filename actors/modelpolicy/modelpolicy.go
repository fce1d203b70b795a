package modelpolicy

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/agent-troupe/troupe/actors/callback"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// DefaultTimeout is how long a decision may take by default, as in the vendor's SDK.
const DefaultTimeout = 500 * time.Millisecond

// expired tells the agent why it gets no model.
func expired(limit time.Duration) error {
	e := &session.ModelPolicyTimeoutError{Limit: limit}
	return &callback.PublicError{Reason: e.Error(), Err: e}
}

// Prepare returns the function that turns requests into calls of resolve. limit is the
// time limit of a call; zero means 500 ms, negative no limit.
func Prepare(d dialect.Dialect, resolve session.ResolveModel, limit time.Duration) callback.Prepare {
	if limit == 0 {
		limit = DefaultTimeout
	}
	return func(r *callback.Request) (callback.Job, error) {
		job := callback.Job{Name: "get_model_policy", Limit: max(limit, 0), SetBy: "ResolveModelTimeout", Expired: func() error { return expired(limit) }}
		req, err := protocol.DecodeAgentRequest(r.Frame)
		if err != nil {
			return job, fmt.Errorf("get_model_policy request: %w", err)
		}
		ask, ok := req.(*protocol.ModelPolicyRequest)
		if !ok {
			return job, fmt.Errorf("get_model_policy request: decoded as %T", req)
		}
		if resolve == nil {
			return job, session.ErrNoResolveModel
		}
		job.Run = func(ctx context.Context) (json.RawMessage, error) {
			result, err := resolve(ctx, ask)
			if err != nil {
				return nil, err
			}
			return d.ModelPolicyAnswer(result)
		}
		return job, nil
	}
}
