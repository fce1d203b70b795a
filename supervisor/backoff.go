package supervisor

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// Rand is a source of random numbers. A *rand.Rand of math/rand/v2 is one.
type Rand interface {
	// Int64N returns a number in [0, n). It panics if n is not positive.
	Int64N(n int64) int64
}

// The default [Backoff].
const (
	defaultInitial    = 200 * time.Millisecond
	defaultMax        = 30 * time.Second
	defaultFactor     = 2.0
	DefaultResetAfter = time.Minute
)

// NoBackoff is an Initial of a [Backoff] that makes every delay zero, as in OTP.
const NoBackoff time.Duration = -1

// Backoff is exponential backoff with full jitter: the delay before attempt n
// is uniform in [0, min(Max, Initial·Factorⁿ⁻¹)]. The zero value has the
// defaults: 200 ms, doubled up to 30 s, reset after a minute. It is a plain value and
// safe for concurrent use.
type Backoff struct {
	Initial time.Duration // limit of the first delay; 0 means 200 ms
	Max     time.Duration // limit of all delays; 0 means 30 s, or Initial if that is longer
	Factor  float64       // at least 1; 0 means 2
	// ResetAfter is the healthy period after which attempts are counted from 1 again; 0
	// means DefaultResetAfter. See [BackoffState].
	ResetAfter time.Duration
	// Immediate makes the first delay zero, and delays the second attempt as the first
	// would have been delayed.
	Immediate bool
}

// Delay returns a random delay before the given attempt, counted from 1. For an attempt
// below 1 it returns 0.
func (b Backoff) Delay(attempt int, rnd Rand) time.Duration {
	bound := b.bound(attempt)
	if bound <= 0 {
		return 0
	}
	// bound+1, so that the bound itself can be drawn.
	return time.Duration(rnd.Int64N(min(int64(bound), math.MaxInt64-1) + 1))
}

// bound is the longest delay before the given attempt.
func (b Backoff) bound(attempt int) time.Duration {
	if b.Immediate {
		attempt = max(attempt, 0) - 1
	}
	if attempt < 1 || b.Initial < 0 {
		return 0
	}
	b = b.withDefaults()
	bound := float64(b.Initial) * math.Pow(b.Factor, float64(attempt-1))
	if bound < float64(b.Max) {
		return time.Duration(bound)
	}
	return b.Max
}

func (b Backoff) withDefaults() Backoff {
	b.Initial = cmp.Or(b.Initial, defaultInitial)
	b.Max = cmp.Or(b.Max, max(defaultMax, b.Initial))
	b.Factor = cmp.Or(b.Factor, defaultFactor)
	b.ResetAfter = cmp.Or(b.ResetAfter, DefaultResetAfter)
	return b
}

// problem says what is wrong with b, or nothing.
func (b Backoff) problem() string {
	d := b.withDefaults()
	switch {
	case b.Initial < 0 && b.Initial != NoBackoff:
		return fmt.Sprintf("the backoff begins at %v; use 0 for the default, NoBackoff, or a positive duration", b.Initial)
	case b.Max < 0:
		return fmt.Sprintf("the backoff is capped at %v; use 0 for the default or a positive duration", b.Max)
	case d.Max < d.Initial:
		return fmt.Sprintf("the backoff begins at %v, above its cap of %v; raise Max or lower Initial", d.Initial, d.Max)
	case math.IsNaN(d.Factor), math.IsInf(d.Factor, 0), d.Factor < 1:
		return fmt.Sprintf("the backoff grows by the factor %v; use 0 for the default or a number not below 1", b.Factor)
	case b.ResetAfter < 0:
		return fmt.Sprintf("the backoff is reset after %v; use 0 for the default or a positive duration", b.ResetAfter)
	}
	return ""
}

// BackoffState counts the attempts to start one thing, such as a child or a connection.
// Call Up when it works, Down when it has stopped working, and Next for the delay before
// the next attempt. The zero value has the default [Backoff]. It is not safe for
// concurrent use.
type BackoffState struct {
	Backoff Backoff // the delays; zero: the defaults
	tries   tries
}

// Up marks the beginning of a healthy period.
func (s *BackoffState) Up(now time.Time) { s.tries.begin(now) }

// Down marks the end of a healthy period. If the period was at least ResetAfter, the
// attempts are counted from 1 again.
func (s *BackoffState) Down(now time.Time) { s.tries.end(now, s.Backoff) }

// Next counts an attempt and returns a random delay before it.
func (s *BackoffState) Next(rnd Rand) time.Duration { return s.tries.next(rnd, s.Backoff) }

// Reset sets the number of attempts to 0.
func (s *BackoffState) Reset() { s.tries.count = 0 }

// Attempts returns how many times Next was called since the last reset.
func (s *BackoffState) Attempts() int { return s.tries.count }

// tries is what a [BackoffState] counts. The children of a supervisor have their delays
// in their specifications.
type tries struct {
	count int
	up    bool
	since time.Time
}

func (t *tries) begin(now time.Time) { t.up, t.since = true, now }

func (t *tries) end(now time.Time, b Backoff) {
	if t.up && now.Sub(t.since) >= b.withDefaults().ResetAfter {
		t.count = 0
	}
	t.up = false
}

func (t *tries) next(rnd Rand, b Backoff) time.Duration {
	t.count++
	return b.Delay(t.count, rnd)
}
