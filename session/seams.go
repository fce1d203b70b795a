package session

import (
	"context"
	"time"
)

// The seams are the interfaces whose implementations differ between production and
// simulation. A runtime has one of each. All waiting, all concurrency and all
// randomness goes through them.

// Timer is a pending call made by [Clock].
type Timer interface {
	// Stop cancels the call. It reports false when the call already ran, is
	// running, or was stopped before.
	Stop() bool
}

// Clock returns the time and makes timers. It is safe for concurrent use.
type Clock interface {
	Now() time.Time
	// AfterFunc calls fn once, after d, on a goroutine of the clock. fn must be short:
	// it may send a message or end a wait, nothing else.
	AfterFunc(d time.Duration, fn func()) Timer
}

// Executor runs everything that may block: user callbacks, pumps, and waits.
type Executor interface {
	// Go runs fn as a new task, never on the calling goroutine.
	Go(fn func())
	// Await blocks the calling task until done is closed or ctx ends. It returns nil if
	// done is closed, otherwise context.Cause(ctx). A task must not wait for another
	// task in any other way.
	Await(ctx context.Context, done <-chan struct{}) error
}

// Rand is the source of jitter, identifiers and temporary names. It is safe for
// concurrent use.
type Rand interface {
	Uint64() uint64
	// Int64N returns a number in [0, n); it panics when n <= 0.
	Int64N(n int64) int64
}
