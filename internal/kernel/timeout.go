package kernel

import (
	"context"

	"github.com/agent-troupe/troupe/session"
)

// WithTimeout is context.WithTimeout on a clock of the caller's. The cause of
// an expired context is e. A limit of zero or less means none.
func WithTimeout(ctx context.Context, clk Clock, e *session.TimeoutError) (context.Context, context.CancelFunc) {
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
