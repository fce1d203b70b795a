package callback

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// ModelPolicyTimeout is how long a decision may take by default, as in the vendor's SDK.
const ModelPolicyTimeout = 500 * time.Millisecond

// modelPolicyExpired tells the agent why it gets no model.
func modelPolicyExpired(limit time.Duration) error {
	e := &session.ModelPolicyTimeoutError{Limit: limit}
	return &PublicError{Reason: e.Error(), Err: e}
}

// PrepareModelPolicy returns the function that turns requests into calls of resolve. limit is the
// time limit of a call; zero means 500 ms, negative no limit.
func PrepareModelPolicy(d dialect.Dialect, resolve session.ResolveModel, limit time.Duration) Prepare {
	limit = cmp.Or(limit, ModelPolicyTimeout)
	return func(r *Request) (Job, error) {
		job := Job{Name: "get_model_policy", Limit: max(limit, 0), SetBy: "ResolveModelTimeout", Expired: func() error { return modelPolicyExpired(limit) }}
		req, err := protocol.DecodeAgentRequest(*r.Frame)
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
