package kernel

import (
	"context"
	"time"
)

// Timer is a pending call made by [Clock.AfterFunc].
type Timer interface {
	// Stop cancels the call. It reports false when the call already ran, is
	// running, or was stopped before.
	Stop() bool
}

// Clock is the time seam. Implementations are safe for concurrent use.
type Clock interface {
	Now() time.Time
	// AfterFunc calls fn once, d from now, on a goroutine of the clock's own.
	// fn must be short: it sends a message or ends a wait, nothing else.
	AfterFunc(d time.Duration, fn func()) Timer
}

// Dispatcher is the seam that decides where and when actors and tasks run. It is
// all that knows about goroutines: whatever its answers are, the code that runs is
// the same.
type Dispatcher interface {
	// Go runs fn on a goroutine of its own, never inline.
	Go(fn func())
	// Inline reports whether a worker takes up the actor that it told, or the task
	// that its actor made, itself. Otherwise another worker does.
	Inline(task bool) bool
	// Batch is how many messages a worker handles for one actor at a time.
	Batch() int
	// Yield is called between two things that a worker does; the next one is a
	// batch of an actor's, or not. Others may run first.
	Yield(actor bool)
	// Watch is called when the holder of a role begins the n-th task in its place.
	// If the task lasts, the dispatcher calls HandOff(n) of the role.
	Watch(r *Role, n uint64)
}

// Executor is the seam for everything that may block: user callbacks, pumps,
// and waits.
type Executor interface {
	// Go runs fn as a task of its own, never inline.
	Go(fn func())
	// Await blocks the calling task until done is closed or ctx ends, and
	// returns nil or context.Cause(ctx). When both hold, done wins. It is the
	// only way a task may block on another one.
	Await(ctx context.Context, done <-chan struct{}) error
}

// Rand is the randomness seam: jitter, identifiers, temporary names.
// Implementations are safe for concurrent use.
type Rand interface {
	Uint64() uint64
	// Int64N returns a number in [0, n); it panics when n <= 0.
	Int64N(n int64) int64
}
