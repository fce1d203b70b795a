package sdk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// RetryPolicy configures [Retry]. The zero value has sensible defaults.
type RetryPolicy struct {
	Attempts int // the largest number of calls, including the first. Default: 0, which is 4
	// Backoff is the delay between two calls. Default: the zero value: a random delay
	// of at most 1 s, then at most 2 s, and so on up to 30 s (full jitter).
	Backoff supervisor.Backoff
	// MaxWait is the longest delay that Retry accepts from the agent. After an error
	// whose [RetryAfter] is longer, Retry does not try again. Default: 0, which is 5 min.
	MaxWait time.Duration
	// Runtime provides the clock and the randomness of the delays. Default: nil, the
	// runtime that all sessions without Options.Runtime share.
	Runtime session.Runtime
	// OnFailure is called with each attempt that failed, before the delay. Default: nil.
	OnFailure func(Attempt)
}

const (
	defaultAttempts = 4
	defaultMaxWait  = 5 * time.Minute
)

// Attempt is a call of [Retry] that failed.
type Attempt struct {
	Number int   // number of the attempt, from 1
	Err    error // why it failed
	// Result is the last result of the session, if the call returned a result or its
	// error has one; otherwise nil.
	Result *ResultMessage
	Wait   time.Duration // delay before the next attempt; 0: there is no next attempt, or it starts at once
}

// CostUSD returns the cost of the attempt in US dollars. It is the agent's estimate for
// the whole session. If Result is nil, the cost is unknown and CostUSD returns 0.
func (a Attempt) CostUSD() float64 {
	if a.Result == nil {
		return 0
	}
	return a.Result.TotalCostUSD
}

// Attempts are calls that failed, in order.
type Attempts []Attempt

// CostUSD returns the sum of the attempts' costs. Attempts without a result count as 0.
func (all Attempts) CostUSD() (sum float64) {
	for _, a := range all {
		sum += a.CostUSD()
	}
	return sum
}

// Retry calls try until it succeeds. It tries again only after an error that is
// [Retryable]. It returns the values of the last call, and all attempts that failed,
// also the last one if it failed. The result of the last call does not include the cost
// of the failed attempts.
//
//	r, failed, err := sdk.Retry(ctx, sdk.RetryPolicy{}, func(ctx context.Context) (*sdk.ResultMessage, error) {
//		return sdk.Run(ctx, prompt, opts)
//	})
//
// Between two calls Retry waits for policy.Backoff, and at least as long as the agent
// asks for ([RetryAfter]). If ctx ends during a wait, the error matches both the end of
// ctx and the error of the last call.
//
// Each call of [Run] is a new session, so a retry may repeat side effects. Claude Code
// itself retries calls of the model's API before a turn fails.
func Retry[T any](ctx context.Context, policy RetryPolicy, try func(context.Context) (T, error)) (T, Attempts, error) {
	var none T
	home, err := homeOf(&Options{Runtime: policy.Runtime})
	if err != nil {
		return none, nil, err
	}
	if policy.Attempts <= 0 {
		policy.Attempts = defaultAttempts
	}
	if policy.Backoff == (supervisor.Backoff{}) {
		policy.Backoff.Initial = time.Second
	}
	if policy.MaxWait <= 0 {
		policy.MaxWait = defaultMaxWait
	}
	var failed Attempts
	for n := 1; ; n++ {
		v, err := try(ctx)
		if err == nil {
			return v, failed, nil
		}
		asked, _ := RetryAfter(err)
		a := Attempt{Number: n, Err: err, Result: resultIn(v, err)}
		again := n < policy.Attempts && ctx.Err() == nil && Retryable(err) && asked <= policy.MaxWait
		if again {
			a.Wait = max(asked, policy.Backoff.Delay(n, home.Rand()))
		}
		failed = append(failed, a)
		if policy.OnFailure != nil {
			policy.OnFailure(a)
		}
		switch {
		case !again && n > 1:
			return v, failed, fmt.Errorf("after %d attempts: %w", n, err)
		case !again:
			return v, failed, err
		}
		if stopped := pause(ctx, home.Clock(), home.Executor(), a.Wait); stopped != nil {
			return v, failed, fmt.Errorf("%w, while waiting to try again after: %w", kernel.Ended(ctx, stopped), err)
		}
	}
}

// pause waits, at most until ctx ends.
func pause(ctx context.Context, clock kernel.Clock, exec kernel.Executor, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	over := make(chan struct{})
	timer := clock.AfterFunc(d, func() { close(over) })
	defer timer.Stop()
	return exec.Await(ctx, over)
}

// resultIn is the result that a call has returned, or that its error has.
func resultIn(v any, err error) *ResultMessage {
	if r, ok := v.(*ResultMessage); ok && r != nil {
		return r
	}
	if e, ok := errors.AsType[*session.StructuredOutputError](err); ok {
		return e.Result
	}
	if e, ok := errors.AsType[*ResultError](err); ok {
		return e.Result
	}
	return nil
}
