package kernel

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/benbjohnson/clock"
)

// NewClock adapts a benbjohnson clock; nil means the wall clock.
func NewClock(c clock.Clock) Clock {
	if c == nil {
		c = clock.New()
	}
	return clockAdapter{c}
}

type clockAdapter struct{ clock.Clock }

func (a clockAdapter) AfterFunc(d time.Duration, fn func()) Timer { return a.Clock.AfterFunc(d, fn) }

// GoExecutor runs each task on a goroutine of its own.
type GoExecutor struct{}

// Go implements [Executor].
func (GoExecutor) Go(fn func()) { go fn() }

// Await implements [Executor].
func (GoExecutor) Await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	default:
	}
	//troupe:select whichever wins, the outcome is settled below
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	// Both may hold by now: done wins, so that the outcome does not depend on
	// which branch the runtime picked.
	select {
	case <-done:
		return nil
	default:
		return context.Cause(ctx)
	}
}

// GoDispatcher wakes each actor on a goroutine of its own.
type GoDispatcher struct{}

// Schedule implements [Dispatcher].
func (GoDispatcher) Schedule(fn func()) { go fn() }

// Throughput implements [Dispatcher].
func (GoDispatcher) Throughput() int { return 300 }

// NewRand returns a source safe for concurrent use. A nil seed draws one from
// the operating system.
func NewRand(seed *uint64) Rand {
	var s [2]uint64
	if seed != nil {
		s = [2]uint64{*seed, 0x9E3779B97F4A7C15}
	} else {
		var b [16]byte
		_, _ = crand.Read(b[:]) // never fails: the runtime aborts instead
		s = [2]uint64{binary.LittleEndian.Uint64(b[:8]), binary.LittleEndian.Uint64(b[8:])}
	}
	return &lockedRand{r: rand.New(rand.NewPCG(s[0], s[1]))}
}

type lockedRand struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (l *lockedRand) Uint64() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.r.Uint64()
}

func (l *lockedRand) Int64N(n int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.r.Int64N(n)
}
