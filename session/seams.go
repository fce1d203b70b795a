package session

import (
	"context"
	"time"
)

// The seams are what production and simulation differ in. A runtime has one of each,
// and all that has to wait, to run beside something, or to draw a number uses it.

// Timer is a pending call made by [Clock].
type Timer interface {
	// Stop cancels the call. It reports false when the call already ran, is
	// running, or was stopped before.
	Stop() bool
}

// Clock tells the time. It is safe for concurrent use.
type Clock interface {
	Now() time.Time
	// AfterFunc calls fn once, d from now, on a goroutine of the clock's own.
	// fn must be short: it sends a message or ends a wait, nothing else.
	AfterFunc(d time.Duration, fn func()) Timer
}

// Executor runs everything that may block: user callbacks, pumps, and waits.
type Executor interface {
	// Go runs fn as a task of its own, never inline.
	Go(fn func())
	// Await blocks the calling task until done is closed or ctx ends, and
	// returns nil or context.Cause(ctx). When both hold, done wins. It is the
	// only way a task may block on another one.
	Await(ctx context.Context, done <-chan struct{}) error
}

// Rand is the source of jitter, identifiers and temporary names. It is safe for
// concurrent use.
type Rand interface {
	Uint64() uint64
	// Int64N returns a number in [0, n); it panics when n <= 0.
	Int64N(n int64) int64
}
