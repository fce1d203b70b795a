package modelpolicy

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

// DefaultTimeout is how long a decision may take, as in the vendor's SDK.
const DefaultTimeout = 500 * time.Millisecond

// Func chooses the model of one call. Its context ends when the agent no
// longer wants the choice.
type Func func(ctx context.Context, r *protocol.ModelPolicyRequest) (protocol.ModelPolicyReply, error)

// ErrNoCallback says that the agent asked although nobody was named to choose.
var ErrNoCallback = errors.New("the agent asked for a model, and no ResolveModel callback is configured")

// TimeoutError says that the choice took too long. The agent's query fails.
type TimeoutError struct{ Limit time.Duration }

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("resolveModel did not return within %dms; raise ResolveModelTimeout or answer from a cache", e.Limit.Milliseconds())
}

// Is makes the error match context.DeadlineExceeded.
func (e *TimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// expired tells the agent why it gets no model.
func expired(limit time.Duration) error {
	e := &TimeoutError{limit}
	return &dispatch.Spoken{Reason: e.Error(), Err: e}
}

// New returns the actor. limit zero means 500 ms, negative none.
func New(l *ledger.Ledger, d dialect.Dialect, resolve Func, limit time.Duration, changed func(*kernel.Worker)) *dispatch.Actor {
	if limit == 0 {
		limit = DefaultTimeout
	}
	prepare := func(r *ledger.Request) (dispatch.Job, error) {
		job := dispatch.Job{Name: "get_model_policy", Limit: max(limit, 0), SetBy: "ResolveModelTimeout", Expired: func() error { return expired(limit) }}
		req, err := protocol.DecodeAgentRequest(r.Frame)
		if err != nil {
			return job, fmt.Errorf("get_model_policy request: %w", err)
		}
		ask, ok := req.(*protocol.ModelPolicyRequest)
		if !ok {
			return job, fmt.Errorf("get_model_policy request: decoded as %T", req)
		}
		if resolve == nil {
			return job, ErrNoCallback
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
	return &dispatch.Actor{Kind: ledger.ModelPolicy, Ledger: l, Prepare: prepare, Changed: changed}
}
