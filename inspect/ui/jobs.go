package ui

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// all returns the jobs.
func (w *Window) all() []Job {
	if w.cfg.Jobs == nil {
		return nil
	}
	return w.cfg.Jobs()
}

// jobOf is the job that the path names. Without one it answers the request.
func (w *Window) jobOf(rw http.ResponseWriter, r *http.Request) (Job, bool) {
	all := w.all()
	at := slices.IndexFunc(all, func(j Job) bool { return j.ID() == r.PathValue("job") })
	if at < 0 {
		missing(rw, "job")
		return nil, false
	}
	return all[at], true
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

// jobJSON is the summary of a job with what is counted of its tasks.
func jobJSON(s *JobState, whole bool) (map[string]json.RawMessage, error) {
	raw, err := json.Marshal(s.Summary)
	if err != nil {
		return nil, err
	}
	m := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, err
	}
	states, failed, running := map[string]int{}, map[failure]int{}, []JobTask{}
	for i := range s.Tasks {
		t := &s.Tasks[i]
		states[t.State]++
		switch {
		case t.State == "running":
			running = append(running, *t)
		case t.State == "over" && t.Error != "":
			failed[failure{Status: t.Status, Error: t.Error}]++
		}
	}
	put := func(name string, v any) {
		if raw, e := json.Marshal(v); e == nil {
			m[name] = raw
		} else {
			err = e
		}
	}
	put("total", len(s.Tasks))
	put("states", states)
	put("waiting", len(s.Approvals))
	if !whole {
		return m, err
	}
	groups := []failure{}
	for f, n := range failed {
		groups = append(groups, failure{f.Status, f.Error, n})
	}
	slices.SortFunc(groups, func(a, b failure) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Status, b.Status), strings.Compare(a.Error, b.Error))
	})
	put("failures", groups[:min(len(groups), maxFailures)])
	slices.SortStableFunc(running, func(a, b JobTask) int { return a.Since.Compare(b.Since) })
	values := make([]any, min(len(running), maxRunning))
	for i := range values {
		values[i] = running[i].Value
	}
	put("running", values)
	return m, err
}

func (w *Window) jobs(rw http.ResponseWriter, r *http.Request, _ caller) {
	list := []map[string]json.RawMessage{}
	for _, j := range w.all() {
		s, err := j.State(r.Context())
		if err != nil {
			refuse(rw, err)
			return
		}
		m, err := jobJSON(&s, false)
		if err != nil {
			refuse(rw, err)
			return
		}
		list = append(list, m)
	}
	writeJSON(rw, map[string]any{"jobs": list})
}

func (w *Window) job(rw http.ResponseWriter, r *http.Request, _ caller) {
	j, ok := w.jobOf(rw, r)
	if !ok {
		return
	}
	s, err := j.State(r.Context())
	var m map[string]json.RawMessage
	if err == nil {
		m, err = jobJSON(&s, true)
	}
	if err != nil {
		refuse(rw, err)
		return
	}
	writeJSON(rw, m)
}

// maxTasks is the most tasks of one answer.
const maxTasks = 500

// tasks answers with a part of the tasks, and where the next part begins.
func (w *Window) tasks(rw http.ResponseWriter, r *http.Request, _ caller) {
	j, ok := w.jobOf(rw, r)
	if !ok {
		return
	}
	s, err := j.State(r.Context())
	if err != nil {
		refuse(rw, err)
		return
	}
	after, _ := strconv.Atoi(r.URL.Query().Get("after")) // else from the beginning
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	if limit < 1 || limit > maxTasks {
		limit = maxTasks
	}
	after = min(max(after, 0), len(s.Tasks))
	end := min(after+limit, len(s.Tasks))
	part := make([]any, 0, end-after)
	for i := range s.Tasks[after:end] {
		part = append(part, s.Tasks[after+i].Value)
	}
	writeJSON(rw, map[string]any{"tasks": part, "cursor": strconv.Itoa(end), "more": end < len(s.Tasks)})
}

// waiting are the calls that wait for a person, the oldest first. Without Access.Content
// they have nothing that the agent wrote but the name of the tool.
func (w *Window) waiting(r *http.Request) ([]Approval, error) {
	list := []Approval{}
	for _, j := range w.all() {
		s, err := j.State(r.Context())
		if err != nil {
			return nil, err
		}
		for i := range s.Approvals {
			a := s.Approvals[i]
			a.Job, a.Answer = j.ID(), true
			list = append(list, w.shown(a))
		}
	}
	slices.SortStableFunc(list, func(a, b Approval) int { return a.At.Compare(b.At) })
	return list, nil
}

// shown is a call as this window may show it.
func (w *Window) shown(a Approval) Approval {
	if !w.cfg.Access.Content {
		a.Input, a.Said = nil, ""
	}
	return a
}

func (w *Window) approvals(rw http.ResponseWriter, r *http.Request, _ caller) {
	list, err := w.waiting(r)
	if err != nil {
		refuse(rw, err)
		return
	}
	writeJSON(rw, map[string]any{"at": w.clock.Now().Format(time.RFC3339Nano), "approvals": list})
}
