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

// This file is all that production has and a simulation has not: the wall clock,
// goroutines, and the monitor of roles.

// NewClock adapts a benbjohnson clock; nil means the wall clock.
func NewClock(c clock.Clock) Clock {
	if c == nil {
		c = clock.New()
	}
	return clockAdapter{c}
}

type clockAdapter struct{ clock.Clock }

func (a clockAdapter) AfterFunc(d time.Duration, fn func()) Timer { return a.Clock.AfterFunc(d, fn) }

// GoExecutor runs each task on a new goroutine.
type GoExecutor struct{}

// Go implements [Executor].
func (GoExecutor) Go(fn func()) { go fn() }

// Await implements [Executor].
func (GoExecutor) Await(ctx context.Context, done <-chan struct{}) error {
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

// production is the dispatcher and the executor of production. A goroutine that
// has run its task is used again, since its stack has grown to what tasks need;
// but none is kept once no task is left anywhere.
type production struct {
	GoExecutor // Await

	mu    sync.Mutex
	live  int           // tasks that run, or are about to
	spare []chan func() // of idle goroutines; closed to end them

	monitor monitor
}

// maxSpare is how many idle goroutines are kept.
const maxSpare = 4

// Go implements [Dispatcher] and [Executor].
func (p *production) Go(fn func()) {
	p.mu.Lock()
	p.live++
	var idle chan func()
	if n := len(p.spare); n > 0 {
		idle, p.spare = p.spare[n-1], p.spare[:n-1]
	}
	p.mu.Unlock()
	if idle != nil {
		idle <- fn
		return
	}
	go p.work(fn)
}

// Inline implements [Dispatcher]: to wake a goroutine costs more than all the
// rest.
func (p *production) Inline(bool) bool { return true }

// Batch implements [Dispatcher].
func (p *production) Batch() int { return 300 }

// Yield implements [Dispatcher].
func (p *production) Yield(*Seat, bool) {}

// Watch implements [Dispatcher].
func (p *production) Watch(r *Role, _ uint64) { p.monitor.watch(r) }

func (p *production) work(fn func()) {
	var more chan func()
	for ok := true; ok; fn, ok = <-more {
		p.run(fn)
		if more == nil {
			more = make(chan func(), 1)
		}
		if !p.rest(more) {
			return
		}
	}
}

// run runs a task, which may end its goroutine instead of returning.
func (p *production) run(fn func()) {
	returned := false
	defer func() {
		if !returned {
			p.rest(nil)
		}
	}()
	fn()
	returned = true
}

// rest ends a task and reports whether its goroutine is kept for another, which
// comes through more.
func (p *production) rest(more chan func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live--
	if p.live == 0 {
		for _, idle := range p.spare {
			close(idle)
		}
		p.spare = nil
		return false
	}
	if more == nil || len(p.spare) == maxSpare {
		return false
	}
	p.spare = append(p.spare, more)
	return true
}

// patience is how long a task may block a role before the monitor hands the role to
// another goroutine; in the worst case it takes almost twice as long.
const patience = time.Millisecond

// monitor hands off the roles whose task lasts. It has a timer while tasks run in
// place of roles, and no goroutine; to watch a role that it knows costs one atomic
// load.
type monitor struct {
	mu    sync.Mutex
	roles []*Role // watched
	timer *time.Timer
}

func (m *monitor) watch(r *Role) {
	if r.watched.Load() || !r.watched.CompareAndSwap(false, true) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r.seen = 0
	m.roles = append(m.roles, r)
	switch {
	case len(m.roles) > 1: // the timer runs
	case m.timer == nil:
		m.timer = time.AfterFunc(patience, m.look)
	default:
		m.timer.Reset(patience)
	}
}

// look hands off each role that has been in the same task since the last look, and
// forgets roles without a task since then.
func (m *monitor) look() {
	m.mu.Lock()
	defer m.mu.Unlock()
	kept := m.roles[:0]
	for _, r := range m.roles {
		n := r.state.Load()
		switch {
		case n != r.seen:
		case n%2 == 1:
			r.HandOff(n)
		case m.forget(r):
			continue
		}
		r.seen = n
		kept = append(kept, r)
	}
	clear(m.roles[len(kept):])
	if m.roles = kept; len(kept) > 0 {
		m.timer.Reset(patience)
	}
}

// forget reports whether a role is watched no more: a task that began meanwhile
// may have found it still watched.
func (m *monitor) forget(r *Role) bool {
	r.watched.Store(false)
	return r.state.Load()%2 == 0 || !r.watched.CompareAndSwap(false, true)
}

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
