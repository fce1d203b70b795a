package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/fleet/queue"
	"github.com/agent-troupe/troupe/internal/kernel"
)

// entry is a task that was checked.
type entry struct {
	task  *Task
	index int
	hash  string
}

// entries checks tasks, whose first has the index first. all: they are all tasks of the job.
func (j *Job) entries(tasks []Task, first int, complete bool) ([]*entry, error) {
	var wrong []error
	var all []*Task
	entries := make([]*entry, 0, len(tasks))
	for i := range tasks {
		t := tasks[i]
		all = append(all, &t)
		if err := j.checkTask(first+i, &t); err != nil {
			wrong = append(wrong, err)
			continue
		}
		hash, err := j.Hashes[t.ID], error(nil)
		if hash == "" {
			hash, err = t.Hash()
		}
		if err != nil {
			wrong = append(wrong, &TaskError{Index: first + i, ID: t.ID, Field: "options", Err: err.Error()})
			continue
		}
		entries = append(entries, &entry{task: &t, index: first + i, hash: hash})
	}
	if complete {
		wrong = append(wrong, checkAll(all))
	}
	return entries, errors.Join(wrong...)
}

// source are the tasks of a job: those that are known from the beginning, and those of Stream.
// One task at a time uses it.
type source struct {
	*env
	records *records
	found   *history // of earlier processes
	next    func() (Task, error, bool)
	stop    func()
	ids     map[string]bool
	turn    *kernel.Promise[struct{}] // of the pull that is under way, or was the last one
}

func newSource(e *env, r *records, found *history, tasks iter.Seq2[Task, error]) *source {
	s := &source{env: e, records: r, found: found, ids: map[string]bool{}}
	if tasks != nil {
		s.next, s.stop = iter.Pull2(tasks)
	}
	return s
}

// admit hands tasks to the machine.
func (s *source) admit(ctx context.Context, entries []*entry, last bool) error {
	in := added{past: map[string]*node{}, last: last}
	var records []journal.Record
	var offers []queue.Offer
	for _, e := range entries {
		s.ids[e.task.ID] = true
		if k := s.found.tasks[e.task.ID]; k != nil {
			in.past[e.task.ID] = k
		} else if s.job.Share != ShareWork { // else once it has something to do with the task
			records = append(records, s.records.record(kindAdmitted, e.task.ID, 0, admittedRecord{Hash: e.hash}))
		}
		offers = append(offers, s.found.offer(e))
		w := s.job.workspaceOf(e.task)
		in.specs = append(in.specs, spec{
			id: e.task.ID, task: e.task, hash: e.hash, order: s.orderOf(e), priority: e.task.Priority, after: e.task.After,
			exclusive: e.task.Exclusive, budget: s.job.budgetOf(e.task), clean: e.task.Clean, notBefore: e.task.NotBefore, clears: w.clears() || s.job.OnAccept != "",
		})
	}
	if err := s.records.append(ctx, records...); err != nil {
		return err
	}
	if s.worker != "" {
		err := s.job.Queue.Offer(s.calls, offers...)
		if errors.Is(err, queue.ErrOtherHash) {
			err = fmt.Errorf("%w (%w)", ErrOtherTasks, err)
		}
		if err == nil {
			err = s.announce(in.past)
		}
		if err != nil {
			return &queueError{err}
		}
	}
	s.post(in)
	return nil
}

// announce gives the queue the tickets that the journal knows: a requeue may be from a time when no
// program ran, or the queue may be another one.
func (s *source) announce(past map[string]*node) error {
	for _, d := range requeues(past, s.worker, s.clock.Now()) {
		if err := s.job.Queue.Decide(s.calls, d); err != nil && !errors.Is(err, queue.ErrDecided) {
			return err
		}
	}
	return nil
}

// orderOf is where a task stands among those of its priority. Each program of a queue begins
// at another place, so that they seldom ask for the same task.
func (s *source) orderOf(e *entry) int {
	if s.worker == "" {
		return e.index
	}
	sum := sha256.Sum256([]byte(s.worker + "\x00" + e.task.ID))
	return int(binary.BigEndian.Uint32(sum[:]) >> 1)
}

// begin takes n tasks from Stream's iterator, which may block.
func (s *source) begin(ctx context.Context, n int) {
	turn := kernel.NewPromise[struct{}]()
	s.turn = turn
	s.exec.Go(func() {
		s.pull(ctx, n)
		s.post(pulled{})
		if !turn.Resolve(struct{}{}) { // the job is over
			s.stop()
		}
	})
}

// close ends Stream's tasks. If they are being asked for, the one who asks does that.
func (s *source) close() {
	if s.stop != nil && (s.turn == nil || !s.turn.Resolve(struct{}{})) {
		s.stop()
	}
}

func (s *source) pull(ctx context.Context, n int) {
	for ; n > 0 && s.next != nil; n-- {
		var t Task
		var more bool
		err := guard("the tasks", func() (err error) { t, err, more = s.next(); return err })
		if err == nil && more && s.ctx.Err() == nil {
			err = s.offer(ctx, t)
		}
		if err != nil {
			s.fail(fmt.Errorf("tasks: %w", err))
		}
		if err != nil || !more {
			s.next = nil
			s.stop()
			if err == nil && len(s.ids) == 0 {
				s.fail(noTasks())
			}
			s.post(added{last: true})
		}
	}
}

func (s *source) offer(ctx context.Context, t Task) error {
	entries, err := s.job.entries([]Task{t}, len(s.ids), false)
	if err != nil {
		return err
	}
	if s.ids[t.ID] {
		return &TaskError{Index: len(s.ids), ID: t.ID, Field: "id", Err: "came before"}
	}
	for _, id := range t.After {
		if !s.ids[id] {
			return &TaskError{Index: len(s.ids), ID: t.ID, Field: "after", Err: fmt.Sprintf("names the task %q, which did not come before it", id)}
		}
	}
	if err := s.found.same(entries); err != nil {
		return err
	}
	return s.admit(ctx, entries, false)
}
