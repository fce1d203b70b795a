package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/fleet/queue"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// pollLease is how long a task rests that another program has, if the queue does not say
// until when.
const pollLease = time.Minute

// tenure is a lease that the job holds; the job's mu guards it.
type tenure struct {
	queue.Lease
	from     time.Time // granted, or extended
	extend   session.Timer
	deadline session.Timer
	// ends is the end of an extension that waits for the queue. nil: there is none.
	ends context.CancelFunc
}

// openQueue makes the queue of the job. Without Job.Queue it begins above the fences in the
// journal.
func (r *run) openQueue() {
	if r.queue = r.job.Queue; r.queue == nil {
		alone := &aloneQueue{}
		alone.fence.Store(r.found.fence)
		r.queue = alone
	}
}

// aloneQueue is the queue of a job without others: it counts fences, and grants everything.
type aloneQueue struct{ fence atomic.Uint64 }

func (q *aloneQueue) Lease(_ context.Context, task, worker string) (queue.Lease, error) {
	return queue.Lease{Task: task, Worker: worker, Fence: q.fence.Add(1)}, nil
}

func (*aloneQueue) Extend(_ context.Context, l queue.Lease) (queue.Lease, error) { return l, nil }
func (*aloneQueue) Offer(context.Context, ...queue.Offer) error                  { return nil }
func (*aloneQueue) Release(context.Context, queue.Lease) error                   { return nil }

func (*aloneQueue) Finish(context.Context, queue.Lease, json.RawMessage) error { return nil }

func (*aloneQueue) Watch(context.Context) iter.Seq2[queue.Change, error] {
	return func(func(queue.Change, error) bool) {}
}

// ticket is the name of the task in the queue. A task that is requeued has another one: the
// queue keeps the result that is void.
func (e *entry) ticket() string {
	if e.requeued == 0 {
		return e.task.ID
	}
	return fmt.Sprintf("%s#%d", e.task.ID, e.requeued)
}

// lease takes the task for this program, unless it has it already. nil, and how long to
// wait: another program has it.
func (r *run) lease(ctx context.Context, e *entry) (t *tenure, wait time.Duration, err error) {
	r.mu.Lock()
	t, ticket, offer := e.tenure, e.ticket(), e.requeued > 0
	late := e.late
	e.late = nil
	r.mu.Unlock()
	if t != nil {
		return t, 0, nil
	}
	if late != nil {
		r.drop(*late)
	}
	if offer {
		if err := r.queue.Offer(ctx, queue.Offer{Task: ticket, Hash: e.hash}); err != nil {
			return nil, 0, err
		}
	}
	l, err := r.queue.Lease(ctx, ticket, r.worker)
	var taken *queue.LeasedError
	switch {
	case errors.As(err, &taken):
		if wait = pollLease; !taken.Until.IsZero() {
			wait = max(taken.Until.Sub(r.clock.Now()), 0) + time.Second
		}
		return nil, wait, nil
	case errors.Is(err, queue.ErrFinished):
		return nil, pollLease, nil // its result comes from Watch
	case err != nil:
		return nil, 0, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t = &tenure{Lease: l}
	e.tenure = t
	r.arm(e, t)
	return t, 0, nil
}

// arm has the lease extended after a third of its time. After seven eighths of it the lease
// counts as lost, whatever the queue is doing, so that the agent is dead when another
// program gets the task; mu is held.
func (r *run) arm(e *entry, t *tenure) {
	t.disarm()
	if t.Until.IsZero() {
		return
	}
	t.from = r.clock.Now()
	whole := t.Until.Sub(t.from)
	t.extend = r.clock.AfterFunc(whole/3, func() { r.exec.Go(func() { r.prolong(e, t) }) })
	t.deadline = r.clock.AfterFunc(whole*7/8, func() { r.lose(e, t) })
}

func (t *tenure) disarm() {
	if t.extend != nil {
		t.extend.Stop()
		t.deadline.Stop()
	}
	if t.ends != nil {
		t.ends()
	}
}

// prolong extends a lease. If the queue does not answer, the deadline decides.
func (r *run) prolong(e *entry, t *tenure) {
	r.mu.Lock()
	current, l := e.tenure == t, t.Lease
	ctx, cancel := context.WithCancel(r.hard)
	t.ends = cancel
	r.mu.Unlock()
	defer cancel()
	if !current {
		return
	}
	l, err := r.queue.Extend(ctx, l)
	if errors.Is(err, queue.ErrLeaseLost) {
		r.lose(e, t)
		return
	}
	if r.prolonged(e, t, l, err) {
		r.drop(l)
	}
}

// drop gives back a lease that the queue has extended and nobody holds any more: otherwise
// nobody would get the task until it runs out again. Of a task that is over the queue
// refuses this.
func (r *run) drop(l queue.Lease) { _ = r.queue.Release(r.hard, l) }

// prolonged keeps the answer of the queue. It returns true for a lease that was extended,
// had been given up meanwhile, and has nothing that runs under it.
func (r *run) prolonged(e *entry, t *tenure, l queue.Lease, err error) (left bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t.ends = nil
	switch {
	case e.tenure != t && err == nil && slices.Contains(r.running, e):
		e.late = &l // its processes are being killed
	case e.tenure != t:
		return err == nil
	case err == nil:
		t.Lease = l
		r.arm(e, t)
	default:
		t.extend = r.clock.AfterFunc(t.Until.Sub(t.from)/8, func() { r.exec.Go(func() { r.prolong(e, t) }) })
	}
	return false
}

// lose ends an attempt whose lease is lost: its processes are killed before anything else.
func (r *run) lose(e *entry, t *tenure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.tenure == t {
		r.forget(e)
	}
}

// giveUp ends the attempt of a task that another program has finished.
func (r *run) giveUp(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(r.tasks[id])
}

// forget lets go of a lease, and kills what runs under it; mu is held.
func (r *run) forget(e *entry) {
	if e.tenure != nil {
		e.tenure.disarm()
		e.tenure = nil
	}
	if slices.Contains(r.running, e) {
		e.last.lost = true
		e.last.kill()
	}
}

// leased runs the attempt of a task once this program has leased it.
func (r *run) leased(ctx context.Context, e *entry, a *attempt) (o outcome) {
	t, wait, err := r.lease(ctx, e)
	switch {
	case ctx.Err() != nil && r.job.Queue != nil:
		return outcome{status: Interrupted, why: "the job has stopped", refused: true}
	case err != nil:
		r.fail(&queueError{err})
		return outcome{status: Interrupted, why: err.Error(), refused: true}
	case t == nil:
		return outcome{status: Interrupted, why: "another program has the task", refused: true, after: wait}
	}
	a.fence = t.Fence
	if r.job.Queue != nil {
		r.began(a)
	}
	return r.attempt(ctx, a)
}

// queueError is an error of the queue that no job can handle.
type queueError struct{ err error }

func (e *queueError) Error() string {
	return fmt.Sprintf("the queue has failed: %v: resume the job when it works again", e.err)
}

func (e *queueError) Unwrap() error { return e.err }

// answer is a result that the queue was given, and what it said.
type answer struct {
	record journal.Record
	err    error
}

// claim gives the queue the result of a task that ends with its attempt. If the lease is
// lost, so is the attempt: its result is void, and the task waits for another program.
func (r *run) claim(now time.Time, c claim) input {
	r.mu.Lock()
	e := r.tasks[c.id]
	lost := e.tenure == nil || e.foreign != nil // since the attempt has ended
	r.mu.Unlock()
	var a answer
	if !lost {
		a.record, lost, a.err = r.resultRecord(now, finish{id: c.id, status: c.status})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !lost {
		e.claimed, e.missed = &a, nil
		return claimed{id: c.id}
	}
	missed := e.missed
	e.unkept, e.missed = nil, nil
	if n := len(e.attempts); n > 0 {
		e.attempts[n-1].Status, e.attempts[n-1].Error = Interrupted, queue.ErrLeaseLost.Error()
	}
	if missed != nil {
		r.exec.Go(func() { r.hear(r.hard, *missed) })
	}
	return claimed{c.id, true}
}

// settle gives the result of a task to the queue, before it is in the journal: a result
// that another program has already given is the one that counts. kept is the result as it
// goes into the journal, whose text may be in a file. lost: the queue does not take it,
// because the lease has ended, also while the result was made, or another program has
// finished the task.
func (r *run) settle(ctx context.Context, e *entry, result *TaskResult, kept json.RawMessage) (lost bool, err error) {
	r.mu.Lock()
	t := e.tenure
	r.mu.Unlock()
	if t == nil {
		return r.job.Queue != nil, nil
	}
	if (result.TextFile != "" || result.StructuredFile != "") && r.job.Store == nil && r.job.Queue != nil { // nobody else could read the files
		whole := *result
		whole.TextFile, whole.StructuredFile = "", ""
		kept, err = json.Marshal(whole)
	}
	if err == nil {
		err = r.queue.Finish(ctx, t.Lease, kept)
	}
	lost = errors.Is(err, queue.ErrLeaseLost) || errors.Is(err, queue.ErrFinished)
	if err != nil && !lost {
		return false, &queueError{fmt.Errorf("the result of task %s: %w", result.ID, err)}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t.disarm()
	if e.tenure == t {
		e.tenure = nil
	}
	return lost, nil
}

// watchQueue takes what other programs do, until the job ends. The queue of a job alone has
// nothing to tell.
func (r *run) watchQueue() (stop func()) {
	if r.job.Queue == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(r.hard)
	ended := kernel.NewPromise[struct{}]()
	r.exec.Go(func() {
		defer ended.Resolve(struct{}{})
		for c, err := range r.queue.Watch(ctx) {
			if err != nil {
				r.fail(&queueError{err})
				return
			}
			r.hear(ctx, c)
		}
	})
	return func() {
		cancel()
		_, _ = ended.Wait(context.Background(), r.exec)
	}
}

// hear is heed, and stops the job if that fails.
func (r *run) hear(ctx context.Context, c queue.Change) {
	if err := r.heed(ctx, c); err != nil {
		r.fail(err)
	}
}

// unknown reports whether a change says what the job does not know. A result of another
// program that comes while this one offers its own to the queue is kept: claim looks at it
// again if the queue does not take the own one. mu is held.
func (e *entry) unknown(c *queue.Change) bool {
	if e == nil || e.ticket() != c.Task || e.foreign != nil {
		return false
	}
	if e.unkept != nil && c.State == queue.Over && c.Fence != e.unkept.Fence {
		e.missed = c
	}
	return e.result == nil && e.unkept == nil
}

// heed tells the plan what another program has done.
func (r *run) heed(ctx context.Context, c queue.Change) error {
	id, _, _ := strings.Cut(c.Task, "#")
	r.mu.Lock()
	e := r.tasks[id]
	news := e.unknown(&c)
	if news && c.State == queue.Free {
		r.put(freed{id})
	}
	r.mu.Unlock()
	if !news || c.State != queue.Over {
		return nil
	}
	var t TaskResult
	err := json.Unmarshal(c.Result, &t)
	if err == nil && t.ID != id {
		err = fmt.Errorf("it is of task %q", t.ID)
	}
	if err == nil {
		err = unfold(&t, func(name string) ([]byte, error) { return r.borrow(ctx, c.Fence, name) })
	}
	if err != nil {
		return &queueError{fmt.Errorf("the result of task %s by %s: %w", id, c.Worker, err)}
	}
	t.TextFile, t.StructuredFile, t.Fence, t.Worker = "", "", c.Fence, c.Worker
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.unknown(&c) { // still
		e.foreign = &t
		r.usage.add(t.Usage)
		r.put(foreign{id, t.Status, t.Usage})
	}
	return nil
}

// release gives back the tasks that are not over.
func (r *run) release(ctx context.Context) error {
	r.mu.Lock()
	var held []queue.Lease
	for _, e := range r.order {
		if t := e.tenure; t != nil {
			t.disarm()
			e.tenure = nil
			held = append(held, t.Lease)
		}
	}
	r.mu.Unlock()
	var errs []error
	for _, l := range held {
		if err := r.queue.Release(ctx, l); err != nil && !errors.Is(err, queue.ErrLeaseLost) {
			errs = append(errs, &queueError{err})
		}
	}
	return errors.Join(errs...)
}
