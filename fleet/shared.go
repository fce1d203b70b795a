package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/fleet/queue"
	"github.com/agent-troupe/troupe/internal/kernel"
)

// shared calls the queue, each time on a separate task, and sends the machine the answers.
type shared struct {
	*env
	records  *records
	watching context.Context
	stop     context.CancelFunc
	over     *kernel.Promise[struct{}] // the watch is
	began    bool
}

func newShared(e *env, r *records) *shared {
	s := &shared{env: e, records: r, over: kernel.NewPromise[struct{}]()}
	s.watching, s.stop = context.WithCancel(e.hard)
	return s
}

// queueError is an error of the queue that no job can handle.
type queueError struct{ err error }

func (e *queueError) Error() string {
	return fmt.Sprintf("the queue has failed: %v: resume the job when it works again", e.err)
}

func (e *queueError) Unwrap() error { return e.err }

// request is what a lease is asked for.
type request struct {
	ticket, hash string
	offer        bool // the queue does not know the ticket
}

// lease takes a task for this program. refused: another program has it, and wait is how long
// to wait.
func (s *shared) lease(ctx context.Context, r request) (l queue.Lease, sent time.Time, refused bool, wait time.Duration, err error) {
	if r.offer {
		if err := s.job.Queue.Offer(ctx, queue.Offer{Task: r.ticket, Hash: r.hash}); err != nil {
			return l, sent, false, 0, err
		}
	}
	sent = s.clock.Now()
	l, err = s.job.Queue.Lease(ctx, r.ticket, s.worker)
	var taken *queue.LeasedError
	switch {
	case errors.As(err, &taken):
		if wait = pollLease; taken.TTL > 0 {
			wait = taken.TTL + time.Second
		}
		return l, sent, true, wait, nil
	case errors.Is(err, queue.ErrFinished):
		return l, sent, true, pollLease, nil // its result comes from Watch
	}
	return l, sent, false, 0, err
}

// extend asks for more time.
func (s *shared) extend(e extend) extended {
	sent := s.clock.Now()
	leases := make([]queue.Lease, len(e.each))
	for i := range e.each {
		leases[i] = e.each[i].lease
	}
	for i, err := range s.job.Queue.Extend(s.calls, leases...) {
		e.each[i].err, e.each[i].lost = err, errors.Is(err, queue.ErrLeaseLost)
	}
	return extended{sent, e.each}
}

// jot notes how a task stands. The time of the lease is not longer by that.
func (s *shared) jot(e jot) jotted {
	text, err := json.Marshal(e.note)
	if err == nil {
		err = s.job.Queue.Note(s.calls, e.lease, text)
	}
	lost := errors.Is(err, queue.ErrLeaseLost)
	if err != nil && !lost {
		err = &queueError{fmt.Errorf("the note of task %s: %w", e.id, err)}
		if s.calls.Err() == nil {
			s.fail(err)
		}
	}
	return jotted{e.id, e.lease, e.note.Usage, lost, err}
}

// release gives a lease back. If that fails it ends by itself.
func (s *shared) release(ctx context.Context, l queue.Lease) { _ = s.job.Queue.Release(ctx, l) }

// claim gives the queue the result of a task, before it is in the journal: a result that another
// program has already given is the one that counts. The long texts are in files before that. lost:
// the queue does not take it, because the lease has ended, also while the result was made, or
// another program has finished the task.
func (s *shared) claim(c claim) claimed {
	l := c.lease
	if l == nil { // it is over without an attempt
		got, _, refused, _, err := s.lease(s.calls, request{c.ticket, c.hash, c.offer})
		if err != nil {
			return s.failed(c, err)
		}
		if !refused {
			l = &got
			c.result.Fence = got.Fence
		}
	}
	if s.root != "" {
		c.result.TextFile, c.result.StructuredFile = s.records.fold(s.calls, c.result, c.number)
	}
	if l == nil {
		return claimed{id: c.id, lost: true}
	}
	kept := inFiles(c.result)
	if s.job.Files == nil { // other programs could not read the files
		kept = *c.result
		kept.TextFile, kept.StructuredFile = "", ""
	}
	text, err := json.Marshal(kept)
	if err == nil {
		err = s.job.Queue.Finish(s.calls, *l, text)
	}
	if lost := errors.Is(err, queue.ErrLeaseLost) || errors.Is(err, queue.ErrFinished); err == nil || lost {
		return claimed{id: c.id, lost: lost}
	}
	return s.failed(c, err)
}

func (s *shared) failed(c claim, err error) claimed {
	err = &queueError{fmt.Errorf("the result of task %s: %w", c.id, err)}
	s.fail(err)
	return claimed{id: c.id, err: err}
}

// begin takes what other programs do, until the job ends.
func (s *shared) begin() {
	s.began = true
	s.exec.Go(func() {
		for c, err := range s.job.Queue.Watch(s.watching) {
			if err == nil {
				err = s.heed(s.watching, c)
			} else {
				err = &queueError{err}
			}
			if err != nil {
				s.fail(err)
				break
			}
		}
		s.over.Resolve(struct{}{})
	})
}

// heed sends the machine a change of another program.
func (s *shared) heed(ctx context.Context, c queue.Change) error {
	if c.Decision != nil { // what follows is about a job that has obeyed it
		obeyed := kernel.NewPromise[struct{}]()
		s.post(ordered{*c.Decision, obeyed})
		_, _ = obeyed.Wait(ctx, s.exec)
		return nil
	}
	switch c.State {
	case queue.Current:
		s.post(caughtUp{})
		return nil
	case queue.Free:
		s.sees(c)
		s.post(freed{c.Task})
		return nil
	case queue.Leased:
		if c.Worker != s.worker {
			s.sees(c)
			s.post(taken{c.Task, c.Worker})
		}
		return nil
	}
	of, _ := question(s.env, func(to *kernel.Promise[known]) note { return knows{c.Task, c.Worker, c.Fence, to} })
	if of.old {
		return nil
	}
	id, _, _ := strings.Cut(c.Task, "#")
	var t TaskResult
	err := json.Unmarshal(c.Result, &t)
	if err == nil && t.ID != id {
		err = fmt.Errorf("it is of task %q", t.ID)
	}
	if err == nil && !of.bare {
		err = unfold(&t, func(name string) ([]byte, error) { return s.records.borrow(ctx, c.Fence, name) })
	}
	if err != nil {
		return &queueError{fmt.Errorf("the result of task %s by %s: %w", id, c.Worker, err)}
	}
	t.TextFile, t.StructuredFile, t.Fence, t.Worker = "", "", c.Fence, cmp.Or(c.Worker, t.Worker)
	s.post(foreign{c.Task, &t})
	return nil
}

// close ends the watch, and gives back the tasks that are not over. A queue that does not answer
// gets them back when their leases end.
func (s *shared) close(held []jot) {
	s.stop()
	if s.began {
		_, _ = s.over.Wait(context.Background(), s.exec)
	}
	ctx, stop := s.limited(s.job.QueueGrace)
	defer stop()
	for _, h := range held {
		if text, err := json.Marshal(h.note); err == nil { // it has a form in JSON
			_ = s.job.Queue.Note(ctx, h.lease, text)
		}
		s.release(ctx, h.lease)
	}
}

// sees sends the machine the note of another program.
func (s *shared) sees(c queue.Change) {
	var left TaskNote
	if len(c.Note) > 0 && json.Unmarshal(c.Note, &left) == nil {
		s.post(seen{c.Task, left, c.State == queue.Free})
	}
}
