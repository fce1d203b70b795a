package ui

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
)

// jobsSeen is what the stream has said of jobs and calls.
type jobsSeen struct {
	jobs  map[*book]*jobSeen
	calls map[string]Approval // that wait, by host and id; nil before the first look
}

type jobSeen struct {
	summary map[string]json.RawMessage
	task    int64 // number of the last change that was sent
}

// look asks the jobs where they stand, and sends what has changed. The first look sends
// nothing: readers fetch that themselves.
func (s *jobsSeen) look(ctx context.Context, w *Window) {
	first, before := s.calls == nil, s.jobs
	s.jobs = map[*book]*jobSeen{}
	books := w.list(ctx)
	_ = w.looks(ctx, books) // the last state stays
	for _, b := range books {
		id := b.job.ID()
		last := before[b]
		if last == nil {
			last = &jobSeen{}
			if first {
				last.task = b.last()
			}
		}
		if s.jobs[b] = last; id == deskJob && b.host != "" {
			continue
		}
		if m, err := b.json(false); err == nil && !reflect.DeepEqual(m, last.summary) {
			if last.summary = m; !first {
				w.hub.publish("job", "", m)
			}
		}
		last.tasks(w, b)
	}
	s.ended(ctx, w, before)
	s.approvals(w, books, first)
}

// tasks sends those that have changed.
func (j *jobSeen) tasks(w *Window, b *book) {
	for more := true; more; {
		var tasks []any
		if tasks, j.task, more = b.since(j.task, maxTasks); len(tasks) > 0 {
			w.hub.publish("task", "", map[string]any{"job": b.job.ID(), "host_id": b.host, "tasks": tasks})
		}
	}
}

// ended sends that jobs do not run any more. One of this program is asked once more where it stood at its
// end; those of other programs are gone with all that they had.
func (s *jobsSeen) ended(ctx context.Context, w *Window, before map[*book]*jobSeen) {
	run := map[[2]string]bool{}
	for b := range s.jobs { //troupe:maporder a set
		run[b.key()] = true
	}
	var over []*book
	for b := range before { //troupe:maporder sorted below
		if !run[b.key()] && (b.job.ID() != deskJob || b.host == "") {
			over = append(over, b)
		}
	}
	slices.SortFunc(over, func(a, b *book) int { k, l := a.key(), b.key(); return slices.Compare(k[:], l[:]) })
	for _, b := range over {
		last := before[b]
		if b.host == "" && b.look(ctx) == nil {
			last.tasks(w, b)
		}
		m, err := b.json(false)
		if err != nil { // it has never said where it stood
			continue
		}
		m["live"] = json.RawMessage("false")
		w.hub.publish("job", "", m)
	}
}

// approvals sends the calls that have come, and those that are gone.
func (s *jobsSeen) approvals(w *Window, books []*book, first bool) {
	before := s.calls
	s.calls = map[string]Approval{}
	for _, a := range w.waiting(books) {
		key := a.Host + "/" + a.ID
		if s.calls[key] = a; before[key].ID == "" && !first {
			w.hub.publish("approval", "", a)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if _, there := s.calls[key]; there {
			continue
		}
		switch answered, busy := w.answers.of(key); {
		case busy: // it is being answered here, and the next look sees how that ends
			s.calls[key] = before[key]
		case answered == nil:
			w.hub.publish("decided", "", decided{ID: before[key].ID, Host: before[key].Host, At: w.clock.Now()}) // elsewhere, or the call is gone
		}
	}
}
