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
	jobs  map[string]*jobSeen
	calls map[string]Approval // that wait; nil before the first look
}

type jobSeen struct {
	book    *book
	summary map[string]json.RawMessage
	task    int64 // number of the last change that was sent
}

// look asks the jobs where they stand, and sends what has changed. The first look sends
// nothing: readers fetch that themselves.
func (s *jobsSeen) look(ctx context.Context, w *Window) {
	first, before := s.calls == nil, s.jobs
	s.jobs = map[string]*jobSeen{}
	for _, b := range w.list() {
		if b.look(ctx) != nil {
			continue // the next look asks again
		}
		id := b.job.ID()
		last := before[id]
		if last == nil || last.book != b {
			last = &jobSeen{book: b}
			if first {
				last.task = b.last()
			}
		}
		s.jobs[id] = last
		if m, err := b.json(false); err == nil && !reflect.DeepEqual(m, last.summary) {
			if last.summary = m; !first {
				w.hub.publish("job", "", m)
			}
		}
		for more := true; more; {
			var tasks []any
			if tasks, last.task, more = b.since(last.task, maxTasks); len(tasks) > 0 {
				w.hub.publish("task", "", map[string]any{"job": id, "tasks": tasks})
			}
		}
	}
	s.approvals(w, first)
}

// approvals sends the calls that have come, and those that are gone.
func (s *jobsSeen) approvals(w *Window, first bool) {
	before := s.calls
	s.calls = map[string]Approval{}
	for _, a := range w.waiting() {
		if s.calls[a.ID] = a; before[a.ID].ID == "" && !first {
			w.hub.publish("approval", "", a)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(before)) {
		if _, there := s.calls[id]; !there && w.answers.of(id) == nil {
			w.hub.publish("decided", "", decided{ID: id, At: w.clock.Now()}) // elsewhere, or the call is gone
		}
	}
}
