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
	decided  []Decision
	watchers []*watcher
}

// queued is a task of a Memory.
type queued struct {
	task   string
	hash   string
	lease  Lease // the last one, or zero
	starts int
	note   json.RawMessage
	leased bool
	result json.RawMessage // or nil if it is not over
	by     uint64          // the fence of the lease that has finished it; 0: none, its result was offered
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
		if t := q.tasks[o.Task]; t != nil && t.hash != o.Hash {
			return fmt.Errorf("task %q: %w", o.Task, ErrOtherHash)
		}
	}
	for _, o := range tasks {
		t := q.tasks[o.Task]
		known := t != nil
		if !known {
			t = &queued{task: o.Task, hash: o.Hash}
			q.tasks[o.Task] = t
			q.order = append(q.order, t)
		}
		ends := o.Result != nil && t.result == nil
		if ends {
			q.free(t)
			t.lease, t.result = Lease{Task: o.Task, Fence: o.Fence}, bytes.Clone(o.Result)
			q.fence = max(q.fence, o.Fence)
		}
		if !known || ends {
			q.tell(q.change(t))
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
	q.tell(q.change(t))
	l := t.lease
	l.Starts, l.Note = t.starts, bytes.Clone(t.note)
	return l, nil
}

// Extend implements [Queue].
func (q *Memory) Extend(_ context.Context, leases ...Lease) []error {
	q.mu.Lock()
	defer q.mu.Unlock()
	errs := make([]error, len(leases))
	for i, l := range leases {
		t, err := q.held(l)
		if errs[i] = err; err == nil {
			q.prolong(t)
		}
	}
	return errs
}

// Note implements [Queue].
func (q *Memory) Note(_ context.Context, l Lease, note json.RawMessage) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	t, err := q.held(l)
	if err != nil {
		return err
	}
	t.starts, t.note = l.Starts, bytes.Clone(note)
	q.tell(q.change(t))
	return nil
}

// Finish implements [Queue].
func (q *Memory) Finish(_ context.Context, l Lease, result json.RawMessage) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t := q.tasks[l.Task]; t != nil && t.result != nil && t.by == l.Fence && t.by != 0 {
		return nil
	}
	t, err := q.held(l)
	if err != nil {
		return err
	}
	q.free(t)
	t.by, t.result = l.Fence, append(json.RawMessage{}, result...) // not nil
	q.tell(q.change(t))
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
	q.tell(q.change(t))
	return nil
}

// Decide implements [Queue].
func (q *Memory) Decide(_ context.Context, d Decision) error {
	d.At = d.At.Round(0).UTC()
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.IndexFunc(q.decided, func(o Decision) bool { return o.ID == d.ID }); i >= 0 {
		if q.decided[i] == d {
			return nil
		}
		return fmt.Errorf("decision %q: %w", d.ID, ErrDecided)
	}
	q.decided = append(q.decided, d)
	q.tell(Change{Decision: &d})
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
		for _, d := range q.decided {
			w.pending = append(w.pending, Change{Decision: &d})
		}
		w.pending = append(w.pending, Change{State: Current})
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
			q.tell(q.change(t))
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
	c := Change{Task: t.task, State: Free, Fence: t.lease.Fence}
	switch {
	case t.result != nil:
		c.State, c.Worker, c.Result = Over, t.lease.Worker, bytes.Clone(t.result)
		return c
	case t.leased:
		c.State, c.Worker = Leased, t.lease.Worker
	}
	c.Note = bytes.Clone(t.note)
	return c
}

// tell gives a change to those who watch.
func (q *Memory) tell(c Change) {
	for _, w := range q.watchers {
		w.pending = append(w.pending, c)
		if w.news != nil {
			close(w.news)
			w.news = nil
		}
	}
}
