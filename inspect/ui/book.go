package ui

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// books are what the window knows of the jobs, by their hosts and ids.
type books struct {
	mu  sync.Mutex
	all map[[2]string]*book
}

// book is what the window knows of one job, with the order in which its tasks have changed.
type book struct {
	mu      sync.Mutex
	job     Job
	host    string // id of its host; "": this program
	n       int64  // number of the last change
	tasks   map[string]*entry
	summary any
	calls   []Approval
}

// key is what differs from that of all other jobs.
func (b *book) key() [2]string { return [2]string{b.host, b.job.ID()} }

var errNoState = errors.New("ui: the program of the job has not said where it stands")

type entry struct {
	JobTask
	changed int64
}

// list returns the jobs that run now, of this program and of all other hosts, each with what is
// known of it.
func (w *Window) list(ctx context.Context) []*book {
	var hosts []Host
	if w.cfg.Hosts != nil {
		hosts = w.others.all(ctx, w)
	}
	of := answersOf(ctx, w, "jobs", hosts, func(ctx context.Context, h Host) ([]Job, error) { return h.Jobs(ctx) })
	w.books.mu.Lock()
	defer w.books.mu.Unlock()
	var list []*book
	all := map[[2]string]*book{}
	add := func(host string, jobs []Job) {
		for _, j := range jobs {
			key := [2]string{host, j.ID()}
			if all[key] != nil {
				continue // ids differ; see Config.Jobs
			}
			b := w.books.all[key]
			if b == nil || b.job != j {
				b = &book{job: j, host: host, tasks: map[string]*entry{}}
			}
			all[key] = b
			list = append(list, b)
		}
	}
	if w.cfg.Jobs != nil {
		add("", w.cfg.Jobs())
	}
	for i, h := range hosts {
		add(h.ID(), of[i])
	}
	w.books.all = all
	return list
}

// listFor are the jobs that a request is about: those of a host, if it names one.
func (w *Window) listFor(r *http.Request) []*book {
	host := r.URL.Query().Get("host")
	return slices.DeleteFunc(w.list(r.Context()), func(b *book) bool { return host != "" && b.host != host })
}

// find returns the job of a host with the id, or nil.
func (w *Window) find(ctx context.Context, host, id string) *book {
	list := w.list(ctx)
	if at := slices.IndexFunc(list, func(b *book) bool { return b.host == host && b.job.ID() == id }); at >= 0 {
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
		a.Job, a.Host, a.Answer, a.ID = b.job.ID(), b.host, a.Answer || b.job.ID() != deskJob, callID(b.job.ID(), a.ID)
		if a.Job == deskJob {
			a.Job = ""
		}
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
// A job of another program that has never answered, or not with a state, has an error.
func (b *book) json(whole bool) (map[string]json.RawMessage, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := map[string]json.RawMessage{}
	raw, err := json.Marshal(b.summary)
	if err == nil {
		err = json.Unmarshal(raw, &m)
	}
	if err == nil && m == nil {
		err = errNoState
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
	if b.host != "" {
		more["host_id"] = b.host
	}
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
