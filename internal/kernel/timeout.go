package kernel

import (
	"context"
	"fmt"
	"time"
)

// TimeoutError says which wait ran out, and of what limit. It matches
// [context.DeadlineExceeded].
type TimeoutError struct {
	What  string        // "initialize", "control request set_model", …
	Limit time.Duration // the limit that was in force
	SetBy string        // the option that sets it, or "default"
}

func (e *TimeoutError) Error() string {
	by := ""
	if e.SetBy != "" {
		by = " (set by " + e.SetBy + ")"
	}
	return fmt.Sprintf("%s: no answer within %v%s", e.What, e.Limit, by)
}

// Is makes the error match context.DeadlineExceeded.
func (e *TimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// Timeout reports true, as in [net.Error].
func (e *TimeoutError) Timeout() bool { return true }

// WithTimeout is context.WithTimeout on a clock of the caller's. The cause of
// an expired context is e. A limit of zero or less means none.
func WithTimeout(ctx context.Context, clk Clock, e *TimeoutError) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if e.Limit <= 0 {
		return ctx, func() { cancel(context.Canceled) }
	}
	t := clk.AfterFunc(e.Limit, func() { cancel(e) })
	return ctx, func() {
		t.Stop()
		cancel(context.Canceled)
	}
}
