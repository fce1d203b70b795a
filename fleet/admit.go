package fleet

import (
	"context"
	"errors"
	"fmt"

	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/fleet/queue"
)

// entries checks tasks, whose first has the index first.
func (r *run) entries(tasks []Task, first int) ([]*entry, error) {
	var wrong []error
	var all []*Task
	entries := make([]*entry, 0, len(tasks))
	for i := range tasks {
		t := tasks[i]
		all = append(all, &t)
		if err := r.job.checkTask(first+i, &t); err != nil {
			wrong = append(wrong, err)
			continue
		}
		hash, err := hashOf(&t)
		if err != nil {
			wrong = append(wrong, &TaskError{Index: first + i, ID: t.ID, Field: "options", Err: err.Error()})
			continue
		}
		entries = append(entries, &entry{task: &t, index: first + i, hash: hash})
	}
	if r.source == nil && first == 0 {
		wrong = append(wrong, checkAll(all))
	}
	return entries, errors.Join(wrong...)
}

// admit hands tasks to the plan, and results of earlier processes to the reader.
func (r *run) admit(ctx context.Context, entries []*entry, last bool) error {
	in := added{past: map[string]*past{}, last: last}
	var records []journal.Record
	var offers []queue.Offer
	r.mu.Lock()
	for _, e := range entries {
		r.tasks[e.task.ID] = e
		r.order = append(r.order, e)
		if k := r.found.tasks[e.task.ID]; k != nil {
			in.past[e.task.ID] = &k.past
			r.outdated() // an earlier process may have died before it wrote what the journal has
			e.attempts, e.result, e.space, e.partial = k.attempts, k.result, k.space, k.partial
			e.former, e.requeued, e.asks, e.orphan = k.former, k.requeued, k.asks, k.open
			k.past.asks = k.waits()
			e.usage = k.usage
			e.usage.add(k.paid)
			r.usage.add(e.usage)
			if e.result != nil {
				e.result.Earlier = true
				r.deliver(*e.result)
			}
		} else {
			records = append(records, r.record(kindAdmitted, e.task.ID, 0, admittedRecord{Hash: e.hash}))
		}
		if e.result == nil {
			offers = append(offers, queue.Offer{Task: e.ticket(), Hash: e.hash})
		}
		w := r.workspaceOf(e.task)
		in.specs = append(in.specs, spec{
			id: e.task.ID, order: e.index, priority: e.task.Priority, after: e.task.After,
			exclusive: e.task.Exclusive, budget: r.job.budgetOf(e.task), clean: e.task.Clean, notBefore: e.task.NotBefore, clears: w.clears() || r.job.OnAccept != "",
		})
	}
	r.mu.Unlock()
	if err := r.append(ctx, records...); err != nil {
		return err
	}
	if err := r.queue.Offer(r.hard, offers...); errors.Is(err, queue.ErrOtherHash) {
		return &queueError{fmt.Errorf("%w (%w)", ErrOtherTasks, err)}
	} else if err != nil {
		return &queueError{err}
	}
	r.catchUp(entries)
	r.post(in)
	return nil
}

// pull takes tasks from the source while there is room.
func (r *run) pull(ctx context.Context, wants int) {
	if r.source == nil {
		return
	}
	for n := wants; n > 0; n-- {
		var t Task
		var more bool
		err := guard("the tasks", func() (err error) { t, err, more = r.source(); return err })
		if err == nil && more {
			err = r.offer(ctx, t)
		}
		if err != nil {
			r.fail(fmt.Errorf("tasks: %w", err))
		}
		if err != nil || !more {
			r.source = nil
			r.cease()
			if err == nil && len(r.tasks) == 0 {
				r.fail(noTasks())
			}
			r.post(added{last: true})
			return
		}
	}
}

func (r *run) offer(ctx context.Context, t Task) error {
	entries, err := r.entries([]Task{t}, len(r.tasks))
	if err != nil {
		return err
	}
	if r.tasks[t.ID] != nil {
		return &TaskError{Index: len(r.tasks), ID: t.ID, Field: "id", Err: "came before"}
	}
	for _, id := range t.After {
		if r.tasks[id] == nil {
			return &TaskError{Index: len(r.tasks), ID: t.ID, Field: "after", Err: fmt.Sprintf("names the task %q, which did not come before it", id)}
		}
	}
	if err := r.found.same(entries); err != nil {
		return err
	}
	return r.admit(ctx, entries, false)
}
