package kernel

import (
	"context"

	"github.com/agent-troupe/troupe/session"
)

// These seams are defined in package session, where users meet them.
type (
	// Timer is [session.Timer].
	Timer = session.Timer
	// Clock is [session.Clock].
	Clock = session.Clock
	// Executor is [session.Executor].
	Executor = session.Executor
	// Rand is [session.Rand].
	Rand = session.Rand
)

// Seat is where a dispatcher keeps what it has to know of a worker between two
// calls. The zero value is that of a new worker.
type Seat struct {
	N uint64
}

// Dispatcher is the seam that decides where and when actors and tasks run. It is
// all that knows about goroutines: whatever its answers are, the code that runs is
// the same.
type Dispatcher interface {
	// Go runs fn on a new goroutine, never inline.
	Go(fn func())
	// Inline reports whether a worker takes up the actor that it told, or the task
	// that its actor made, itself. Otherwise another worker does.
	Inline(task bool) bool
	// Batch is how many messages a worker handles for one actor at a time.
	Batch() int
	// Yield is called between two things that a worker does; the next one is a
	// batch of an actor's, or not. Others may run first. The seat is the worker's.
	Yield(at *Seat, actor bool)
	// Watch is called when the holder of a role begins the n-th task in its place.
	// If the task lasts, the dispatcher calls HandOff(n) of the role.
	Watch(r *Role, n uint64)
}

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
