package queue

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// MemoryConfig configures a [NewMemory]. The zero value is ready for use.
type MemoryConfig struct {
	// TTL is how long a lease is valid. Default: 0, leases do not end by themselves.
	TTL time.Duration
	// Clock says when a lease has ended. nil: that of this machine.
	Clock session.Clock
	// Executor waits in Watch. nil: goroutines. A simulation needs that of its runtime.
	Executor session.Executor
}

// Memory is a [Queue] in this process, for the jobs of one program.
type Memory struct {
	cfg MemoryConfig

	mu       sync.Mutex
	fence    uint64 // of the last lease
	tasks    map[string]*queued
	order    []*queued
	watchers []*watcher
}

// queued is a task of a Memory.
type queued struct {
	Offer
	lease  Lease // the last one, or zero
	leased bool
	result json.RawMessage // or nil if it is not over
	until  time.Time       // when the lease ends; zero: it does not
	timer  session.Timer   // of until
}

// watcher is a loop over Memory.Watch. The queue's mu guards it.
type watcher struct {
	pending []Change
	news    chan struct{} // closed by the next change; nil unless the loop waits
}

// NewMemory returns an empty queue.
func NewMemory(cfg MemoryConfig) *Memory {
	if cfg.Clock == nil {
		cfg.Clock = kernel.NewClock(nil)
	}
	if cfg.Executor == nil {
		cfg.Executor = kernel.GoExecutor{}
	}
	return &Memory{cfg: cfg, tasks: map[string]*queued{}}
}

// Offer implements [Queue].
func (q *Memory) Offer(_ context.Context, tasks ...Offer) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, o := range tasks {
		if t := q.tasks[o.Task]; t != nil && t.Hash != o.Hash {
			return fmt.Errorf("task %q: %w", o.Task, ErrOtherHash)
		}
	}
	for _, o := range tasks {
		if q.tasks[o.Task] == nil {
			t := &queued{Offer: o}
			q.tasks[o.Task] = t
			q.order = append(q.order, t)
			q.tell(t)
		}
	}
	return nil
}

// Lease implements [Queue].
func (q *Memory) Lease(_ context.Context, task, worker string) (Lease, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.tasks[task]
	switch {
	case t == nil:
		return Lease{}, fmt.Errorf("task %q: %w", task, ErrNotOffered)
	case t.result != nil:
		return Lease{}, fmt.Errorf("task %q: %w", task, ErrFinished)
	case q.valid(t):
		return Lease{}, &LeasedError{Task: task, Worker: t.lease.Worker, TTL: q.left(t)}
	}
	q.fence++
	t.lease, t.leased = Lease{Task: task, Worker: worker, Fence: q.fence}, true
	q.prolong(t)
	q.tell(t)
	return t.lease, nil
}

// Extend implements [Queue].
func (q *Memory) Extend(_ context.Context, l Lease) (Lease, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t, err := q.held(l)
	if err != nil {
		return Lease{}, err
	}
	q.prolong(t)
	return t.lease, nil
}

// Finish implements [Queue].
func (q *Memory) Finish(_ context.Context, l Lease, result json.RawMessage) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t := q.tasks[l.Task]; t != nil && t.result != nil && t.lease.Fence == l.Fence {
		return nil
	}
	t, err := q.held(l)
	if err != nil {
		return err
	}
	q.free(t)
	t.result = append(json.RawMessage{}, result...) // not nil
	q.tell(t)
	return nil
}

// Release implements [Queue].
func (q *Memory) Release(_ context.Context, l Lease) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	t, err := q.held(l)
	if err != nil {
		return err
	}
	q.free(t)
	q.tell(t)
	return nil
}

// Watch implements [Queue].
func (q *Memory) Watch(ctx context.Context) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		w := &watcher{}
		q.mu.Lock()
		for _, t := range q.order {
			w.pending = append(w.pending, q.change(t))
		}
		q.watchers = append(q.watchers, w)
		q.mu.Unlock()
		defer func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.watchers = slices.DeleteFunc(q.watchers, func(o *watcher) bool { return o == w })
		}()
		for {
			q.mu.Lock()
			changes := w.pending
			w.pending = nil
			if len(changes) == 0 {
				w.news = make(chan struct{})
			}
			news := w.news
			q.mu.Unlock()
			if len(changes) == 0 && q.cfg.Executor.Await(ctx, news) != nil {
				return
			}
			for _, c := range changes {
				if ctx.Err() != nil || !yield(c, nil) {
					return
				}
			}
		}
	}
}

// held returns the task of a lease that is valid; mu is held, as below.
func (q *Memory) held(l Lease) (*queued, error) {
	t := q.tasks[l.Task]
	if t == nil || t.lease.Fence != l.Fence || !q.valid(t) {
		return nil, fmt.Errorf("task %q: %w", l.Task, ErrLeaseLost)
	}
	return t, nil
}

func (q *Memory) valid(t *queued) bool {
	return t.leased && (t.until.IsZero() || q.cfg.Clock.Now().Before(t.until))
}

// left is how long a lease may still last; 0: it does not end by itself.
func (q *Memory) left(t *queued) time.Duration {
	if t.until.IsZero() {
		return 0
	}
	return t.until.Sub(q.cfg.Clock.Now())
}

// prolong lets a lease end one TTL from now.
func (q *Memory) prolong(t *queued) {
	if t.timer != nil {
		t.timer.Stop()
	}
	if q.cfg.TTL <= 0 {
		return
	}
	l := t.lease
	t.lease.TTL, t.until = q.cfg.TTL, q.cfg.Clock.Now().Add(q.cfg.TTL)
	t.timer = q.cfg.Clock.AfterFunc(q.cfg.TTL, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if t.leased && t.lease.Fence == l.Fence && !q.valid(t) {
			q.free(t)
			q.tell(t)
		}
	})
}

func (q *Memory) free(t *queued) {
	if t.leased = false; t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
}

func (q *Memory) change(t *queued) Change {
	switch {
	case t.result != nil:
		return Change{Task: t.Task, State: Over, Worker: t.lease.Worker, Fence: t.lease.Fence, Result: bytes.Clone(t.result)}
	case t.leased:
		return Change{Task: t.Task, State: Leased, Worker: t.lease.Worker, Fence: t.lease.Fence}
	}
	return Change{Task: t.Task, State: Free, Fence: t.lease.Fence}
}

// tell gives a change to those who watch.
func (q *Memory) tell(t *queued) {
	for _, w := range q.watchers {
		w.pending = append(w.pending, q.change(t))
		if w.news != nil {
			close(w.news)
			w.news = nil
		}
	}
}
