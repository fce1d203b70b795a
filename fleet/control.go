package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/agent-troupe/troupe/internal/kernel"
)

// Pause starts nothing more until [Handle.Resume]. What runs goes on. The number of
// [Handle.Retune] stays. A job that is resumed by another process is not paused. Pause waits
// for nothing, so it may be called from Job.OnEvent; Progress says at once that the job is
// paused, and a start that is being decided may still follow.
func (h *Handle) Pause() { h.pause(true) }

// Resume goes on after [Handle.Pause].
func (h *Handle) Resume() { h.pause(false) }

func (h *Handle) pause(on bool) {
	h.r.mu.Lock()
	defer h.r.mu.Unlock()
	h.r.paused = on
	h.r.put(paused{on})
}

// CancelTask ends a task with the status [Canceled]: its attempt is interrupted, and
// whatever it came to does not count. Tasks that come after it are skipped. When it
// returns nil the decision is durable; the result follows when the agent's processes are
// gone. The error matches [ErrNoTask], [ErrTaskOver] or [ErrJobOver], or says that the
// journal cannot be written. A task that is canceled already is no error.
// It waits for the job, so Job.OnEvent must not call it, nor Requeue.
func (h *Handle) CancelTask(ctx context.Context, id string) error {
	return h.steer(ctx, id, steerCancel)
}

// Requeue lets a task run again from the beginning: in a new session and a new workspace,
// with all of its attempts and its budget. An attempt that is under way is interrupted.
// A result that the task has is void: it is taken out of results.jsonl, and the next one
// comes with a higher TaskResult.Requeued, also to a reader who has had the first. Tasks
// that were skipped because of it are requeued, too; those that have begun stay as they
// are. A task that has not begun stays in the queue. The usage of all attempts counts for
// the job. When it returns nil the decision is durable. The error matches [ErrNoTask] or
// [ErrJobOver], or says that the journal cannot be written.
//
// A job ends with its last task. Use [Amend] for a job that has ended.
func (h *Handle) Requeue(ctx context.Context, id string) error {
	return h.steer(ctx, id, steerRequeue)
}

func (h *Handle) steer(ctx context.Context, id string, what steer) error {
	reply := kernel.NewPromise[struct{}]()
	h.r.post(steered{id, what, reply})
	if _, err := reply.Wait(ctx, h.r.exec); err != nil {
		return fmt.Errorf("task %q: %w", id, err)
	}
	return nil
}

// tooLate answers a decision that the job cannot take any more.
func tooLate(in input) {
	if in, ok := in.(steered); ok {
		in.reply.Fail(ErrJobOver)
	}
}

// steer carries out what somebody has decided. err is that of the journal: then nothing
// has happened.
func (r *run) steer(e effect, err error) {
	switch e := e.(type) {
	case canceling:
		if err == nil {
			r.tasks[e.id].last.stop()
		}
	case requeued:
		if err == nil {
			r.withdraw(e)
			r.outdated()
			r.tell(Event{Kind: EventRequeued, Task: e.id})
		}
	case answered:
		if err = errors.Join(e.err, err); err != nil {
			e.to.Fail(err)
		} else {
			e.to.Resolve(struct{}{})
		}
	case pausing:
		kind := EventResumed
		if e.on {
			kind = EventPaused
		}
		r.tell(Event{Kind: kind})
	case troubled:
		r.tell(Event{Kind: EventOutage, Detail: e.String()})
	case recovered:
		r.tell(Event{Kind: EventRecovered, Detail: e.String()})
	}
}

// withdraw makes the result of a task void, or ends its attempt.
func (r *run) withdraw(e requeued) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tasks[e.id]
	if e.runs {
		t.asks = nil
		t.last.stop()
		return
	}
	t.last, t.asks, t.foreign = nil, nil, nil
	if t.result == nil {
		return
	}
	t.former, t.result = t.result, nil
	t.requeued++
	unread := slices.DeleteFunc(r.results[r.read:], func(o TaskResult) bool { return o.ID == e.id })
	r.results = r.results[:r.read+len(unread)]
}

// requeue is what a requeued record says of a task.
func (k *known) requeue() {
	if k.result != nil {
		k.former, k.result = k.result, nil
		k.requeued++
	}
	k.paid.add(k.usage)
	if k.open { // until its last turn
		k.paid.add(k.seen)
		k.seen = Usage{}
	}
	k.past.attempts, k.base, k.usage, k.status, k.canceled = 0, k.starts, Usage{}, "", false
	k.free, k.deaths, k.runs = 0, 0, false
	k.next = launch{mode: modeFresh}
	k.partial, k.asks = partial{}, nil
}

// reopen finds the tasks that were skipped because of a task which was requeued while no
// process ran the job, and requeues them.
func (h *history) reopen(entries []*entry) []string {
	var all []string
	for again := true; again; {
		again = false
		for _, e := range entries {
			k := h.tasks[e.task.ID]
			if k == nil || k.status != Skipped || k.starts != k.base {
				continue
			}
			if slices.ContainsFunc(e.task.After, func(id string) bool { b := h.tasks[id]; return b != nil && b.result == nil }) {
				k.requeue()
				all, again = append(all, e.task.ID), true
			}
		}
	}
	return all
}

// rests notes when a task goes on, for those who look.
func (r *run) rests(e again) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tasks[e.id].due = e.due
}
