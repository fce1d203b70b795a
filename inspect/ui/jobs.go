package ui

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
)

// jobOf is the job that the path names, after a look at it. Without one it answers the
// request.
func (w *Window) jobOf(rw http.ResponseWriter, r *http.Request) *book {
	b := w.find(r.Context(), r.URL.Query().Get("host"), r.PathValue("job"))
	if b == nil {
		missing(rw, "job")
		return nil
	}
	if err := b.look(r.Context()); err != nil {
		refuse(rw, err)
		return nil
	}
	return b
}

func (w *Window) jobs(rw http.ResponseWriter, r *http.Request, _ caller) {
	list := []map[string]json.RawMessage{}
	books := w.listFor(r)
	if err := w.looks(r.Context(), books); err != nil {
		refuse(rw, err)
		return
	}
	for _, b := range books {
		if b.job.ID() == deskJob && b.host != "" {
			continue
		}
		m, err := b.json(false)
		if err != nil && b.host != "" {
			continue // it ends, or its host does
		}
		if err != nil {
			refuse(rw, err)
			return
		}
		list = append(list, m)
	}
	writeJSON(rw, map[string]any{"at": w.clock.Now(), "jobs": list})
}

func (w *Window) job(rw http.ResponseWriter, r *http.Request, _ caller) {
	b := w.jobOf(rw, r)
	if b == nil {
		return
	}
	m, err := b.json(true)
	if err != nil {
		refuse(rw, err)
		return
	}
	writeJSON(rw, m)
}

// maxTasks is the most tasks of one answer.
const maxTasks = 500

// tasks answers with the tasks that have changed after a cursor, and where the next part
// begins.
func (w *Window) tasks(rw http.ResponseWriter, r *http.Request, _ caller) {
	b := w.jobOf(rw, r)
	if b == nil {
		return
	}
	after, _ := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64) // else from the beginning
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	if limit < 1 || limit > maxTasks {
		limit = maxTasks
	}
	part, last, more := b.since(after, limit)
	writeJSON(rw, map[string]any{"tasks": part, "cursor": strconv.FormatInt(last, 10), "more": more})
}

// waiting are the calls that wait for a person, the oldest first. Without Access.Content
// they have nothing that the agent wrote but the name of the tool: Reason quotes the part of
// the input that its rule is about.
func (w *Window) waiting(books []*book) []Approval {
	list := []Approval{}
	for _, a := range w.cfg.Desk.waiting() {
		list = append(list, w.shown(a))
	}
	for _, b := range books {
		for _, a := range b.waiting() {
			list = append(list, w.shown(a))
		}
	}
	slices.SortStableFunc(list, func(a, b Approval) int { return a.At.Compare(b.At) })
	return list
}

// shown is a call as this window may show it.
func (w *Window) shown(a Approval) Approval {
	if !w.cfg.Access.Content {
		a.Input, a.Said, a.Diff, a.Reason = nil, "", "", ""
	}
	return a
}

func (w *Window) approvals(rw http.ResponseWriter, r *http.Request, _ caller) {
	books := w.listFor(r)
	if err := w.looks(r.Context(), books); err != nil {
		refuse(rw, err)
		return
	}
	list := w.waiting(books)
	if host := r.URL.Query().Get("host"); host != "" {
		list = slices.DeleteFunc(list, func(a Approval) bool { return a.Host != host })
	}
	writeJSON(rw, map[string]any{"at": w.clock.Now(), "approvals": list})
}
