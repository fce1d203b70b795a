package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/fleet/queue"
	"github.com/agent-troupe/troupe/fleet/sharedmcp"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// verdictOf says what an attempt's error means for the task and for the job.
func verdictOf(err error) outcome {
	o := outcome{status: Crashed, why: err.Error()}
	var (
		auth    *sdk.AuthError
		result  *sdk.ResultError
		start   *sdk.StartError
		place   *badWorkspace
		checker *verifierFailed
		limit   *timeLimit
		spent   *budgetSpent
		retries *session.RetryLimitError
		breaker *session.BreakerOpenError
	)
	switch {
	case errors.As(err, &limit):
		o.status = TimedOut
	case errors.As(err, &spent):
		if o.status = OverBudget; spent.job {
			o.status, o.stops = Interrupted, StopBudget
		}
	case errors.Is(err, context.Canceled), errors.Is(err, session.ErrShutdown):
		o.status = Interrupted
	case errors.Is(err, queue.ErrLeaseLost): // what another program makes of the task counts
		o.status, o.lost = Interrupted, true
	case errors.As(err, &place):
		o.status, o.retry = BadWorkspace, place.passing
	case errors.As(err, &checker):
		o.status, o.retry = NotVerified, true
	case errors.As(err, &auth):
		o.status, o.stops = Unauthorized, StopUnauthorized
	case errors.As(err, new(*stalled)):
		o.retry = true
	case errors.As(err, &retries):
		if o.status, o.retry = Overloaded, true; retries.Refused() {
			o.status, o.retry, o.stops = Unauthorized, false, StopUnauthorized
		}
	case errors.As(err, &result):
		o = resultVerdict(result)
	case len(sdk.ConfigErrors(err)) > 0:
		o.status = Invalid
	case errors.As(err, &breaker):
		o.status, o.retry, o.gated, o.after = NotStarted, true, true, breaker.RetryAfter
	case errors.As(err, new(*sharedmcp.StartError)):
		o.status, o.retry = NotStarted, !errors.As(err, &start) || sdk.Retryable(err)
	case errors.As(err, &start):
		o.status, o.retry = NotStarted, sdk.Retryable(err)
	case duringStart(err):
		o.status, o.retry = NotStarted, true
	default:
		o.retry = sdk.Retryable(err) || errors.As(err, new(*sdk.ExitError))
	}
	if o.fault = sharedBy(err); o.fault != ofTask {
		o.retry, o.stops = true, ""
	}
	return o
}

// resultVerdict is that of a result that is an error.
func resultVerdict(e *sdk.ResultError) outcome {
	r := e.Result
	o := outcome{status: Failed, why: e.Error(), after: e.RetryAfter}
	switch {
	case r.APIError == "usage_limit_reached", e.RetryAfter > maxRetryAfter:
		o.status, o.stops = UsageLimit, StopUsageLimit
		if e.RetryAfter > 0 {
			o.why = fmt.Sprintf("%s (the limit is lifted in %s)", o.why, e.RetryAfter.Round(time.Second))
		}
	case r.Subtype == "error_max_turns" || r.TerminalReason == "max_turns":
		o.status = MaxTurns
	case overBudget(r):
		o.status = OverBudget
	case r.TerminalReason == "prompt_too_long":
		o.status, o.poisoned = ContextFull, true
	case sdk.Retryable(e):
		o.status, o.retry = Overloaded, true
	case r.APIErrorStatus == 400 || r.APIErrorType == "invalid_request_error":
		o.poisoned = true // the history has something that the API refuses
	}
	return o
}

// overBudget reports whether the agent ended the turn at its own budget, Options.MaxBudgetUSD.
func overBudget(r *sdk.ResultMessage) bool {
	return r.Subtype == "error_max_budget_usd" || r.TerminalReason == "budget_exhausted"
}

// maxRetryAfter is the longest wait that is a pause. A longer one is treated as a used-up
// quota.
const maxRetryAfter = 10 * time.Minute

// timeLimit is the end of an attempt at Task.Timeout.
type timeLimit struct{ limit time.Duration }

func (e *timeLimit) Error() string {
	return fmt.Sprintf("the attempt took longer than %v (timeout)", e.limit)
}

// classOf names the kind of an error for people who count them.
func classOf(err error) string {
	for _, c := range []struct {
		name string
		is   bool
	}{
		{"", err == nil},
		{"Timeout", errors.As(err, new(*timeLimit))},
		{"Budget", errors.As(err, new(*budgetSpent))},
		{"Workspace", errors.As(err, new(*badWorkspace))},
		{"Verifier", errors.As(err, new(*verifierFailed))},
		{"AuthError", errors.As(err, new(*sdk.AuthError))},
		{"Stalled", errors.As(err, new(*stalled))},
		{"RetryLimitError", errors.As(err, new(*session.RetryLimitError))},
		{"ResultError", errors.As(err, new(*sdk.ResultError))},
		{"ConfigError", len(sdk.ConfigErrors(err)) > 0},
		{"BreakerOpenError", errors.As(err, new(*session.BreakerOpenError))},
		{"SharedMCP", errors.As(err, new(*sharedmcp.StartError))},
		{"StartError", errors.As(err, new(*sdk.StartError))},
		{"ExitError", errors.As(err, new(*sdk.ExitError))},
		{"ControlError", errors.As(err, new(*sdk.ControlError))},
		{"TimeoutError", errors.As(err, new(*sdk.TimeoutError))},
		{"Canceled", errors.Is(err, context.Canceled)},
	} {
		if c.is {
			return c.name
		}
	}
	return "Error"
}

// unauthorized reports whether a failed result says that the login is missing, in the
// words that package sdk goes by.
func unauthorized(r *sdk.ResultMessage, refused bool) bool {
	return refused || r.APIErrorStatus == 401 || r.APIErrorType == "authentication_error" ||
		strings.HasPrefix(r.TerminalReason, "auth_")
}
