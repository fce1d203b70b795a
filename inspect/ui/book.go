package ui

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// books are what the window knows of the jobs, by their ids.
type books struct {
	mu  sync.Mutex
	all map[string]*book
}

// book is what the window knows of one job, with the order in which its tasks have changed.
type book struct {
	mu      sync.Mutex
	job     Job
	n       int64 // number of the last change
	tasks   map[string]*entry
	summary any
	calls   []Approval
}

type entry struct {
	JobTask
	changed int64
}

// list returns the jobs that run now, each with what is known of it.
func (w *Window) list() []*book {
	if w.cfg.Jobs == nil {
		return nil
	}
	w.books.mu.Lock()
	defer w.books.mu.Unlock()
	var list []*book
	all := map[string]*book{}
	for _, j := range w.cfg.Jobs() {
		id := j.ID()
		if all[id] != nil {
			continue // ids differ; see Config.Jobs
		}
		b := w.books.all[id]
		if b == nil || b.job != j {
			b = &book{job: j, tasks: map[string]*entry{}}
		}
		all[id] = b
		list = append(list, b)
	}
	w.books.all = all
	return list
}

// find returns the job with the id, or nil.
func (w *Window) find(id string) *book {
	list := w.list()
	if at := slices.IndexFunc(list, func(b *book) bool { return b.job.ID() == id }); at >= 0 {
		return list[at]
	}
	return nil
}

// look asks the job where it stands.
func (b *book) look(ctx context.Context) error {
	s, err := b.job.State(ctx)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.summary, b.calls = s.Summary, s.Approvals
	for i := range s.Tasks {
		t := &s.Tasks[i]
		last := b.tasks[t.ID]
		if last != nil && reflect.DeepEqual(last.JobTask, *t) {
			continue
		}
		b.n++
		b.tasks[t.ID] = &entry{*t, b.n}
	}
	return nil
}

// since returns tasks that have changed after a change, in the order of their last changes,
// and the number of the last one of them.
func (b *book) since(after int64, limit int) (tasks []any, last int64, more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var found []*entry
	for _, e := range b.tasks {
		if e.changed > after {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(x, y *entry) int { return cmp.Compare(x.changed, y.changed) })
	tasks, last = []any{}, after
	for _, e := range found[:min(limit, len(found))] {
		tasks, last = append(tasks, e.Value), e.changed
	}
	return tasks, last, len(found) > limit
}

// last is the number of the last change.
func (b *book) last() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.n
}

// waiting are the calls of the job that wait for a person.
func (b *book) waiting() []Approval {
	b.mu.Lock()
	defer b.mu.Unlock()
	calls := slices.Clone(b.calls)
	for i := range calls {
		a := &calls[i]
		a.Job, a.Answer, a.ID = b.job.ID(), true, callID(b.job.ID(), a.ID)
	}
	return calls
}

// failure is a group of tasks that have ended alike.
type failure struct {
	Status string `json:"status"`
	Error  string `json:"error"`
	Count  int    `json:"count"`
}

const (
	maxFailures = 50 // groups, the largest first
	maxRunning  = 50 // tasks that run, the longest first
)

// json is the summary of the job with what is counted of its tasks; whole adds the failures
// and the tasks that run.
func (b *book) json(whole bool) (map[string]json.RawMessage, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := map[string]json.RawMessage{}
	raw, err := json.Marshal(b.summary)
	if err == nil {
		err = json.Unmarshal(raw, &m)
	}
	if err != nil {
		return nil, err
	}
	states, failed, running := map[string]int{}, map[failure]int{}, []*entry{}
	for _, t := range b.tasks {
		states[t.State]++
		switch {
		case t.State == "running":
			running = append(running, t)
		case t.State == "over" && t.Error != "":
			failed[failure{Status: t.Status, Error: t.Error}]++
		}
	}
	more := map[string]any{"total": len(b.tasks), "states": states, "waiting": len(b.calls)}
	if whole {
		groups := []failure{}
		for f, n := range failed {
			groups = append(groups, failure{f.Status, f.Error, n})
		}
		slices.SortFunc(groups, func(a, b failure) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Status, b.Status), strings.Compare(a.Error, b.Error))
		})
		more["failures"] = groups[:min(len(groups), maxFailures)]
		slices.SortFunc(running, func(x, y *entry) int { return cmp.Or(x.Since.Compare(y.Since), strings.Compare(x.ID, y.ID)) })
		values := []any{}
		for _, t := range running[:min(len(running), maxRunning)] {
			values = append(values, t.Value)
		}
		more["running"] = values
	}
	for _, name := range slices.Sorted(maps.Keys(more)) {
		if _, there := m[name]; there && name == "total" { // a job that is streamed knows better
			continue
		}
		if m[name], err = json.Marshal(more[name]); err != nil {
			return nil, err
		}
	}
	return m, nil
}
