package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// did makes an event of what a person has done, and returns its number.
func (w *Window) did(from caller, session, what string) uint64 {
	seq := w.rt.Steered(session, from.who, what)
	if seq == 0 { // the session has ended meanwhile
		seq = w.rt.Steered("", from.who, what+" ("+session+")")
	}
	return seq
}

// steered is an event with who did it.
type steered struct {
	inspect.Event
	Who string `json:"who,omitempty"`
}

// accepted answers with the number of the event.
func accepted(rw http.ResponseWriter, id uint64) {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(http.StatusAccepted)
	_, _ = fmt.Fprintf(rw, "{\"id\":%d}\n", id) //nolint:gosec // a number
}

// interrupt ends the turn of a session.
func (w *Window) interrupt(rw http.ResponseWriter, r *http.Request, from caller) {
	w.onSession(rw, r, from, "interrupt of the turn", func(ctx context.Context, s *runtime.Session) error {
		_, err := s.Stop(ctx, session.StopScope{Turn: true})
		return err
	})
}

// closes closes a session.
func (w *Window) closes(rw http.ResponseWriter, r *http.Request, from caller) {
	w.onSession(rw, r, from, "close", func(ctx context.Context, s *runtime.Session) error { return s.Close(ctx) })
}

// onSession asks a session for something that takes a while: the answer is the event that it
// was asked, and a failure is another event.
func (w *Window) onSession(rw http.ResponseWriter, r *http.Request, from caller, what string, do func(context.Context, *runtime.Session) error) {
	s := w.rt.Session(r.PathValue("session"))
	if s == nil {
		missing(rw, "session")
		return
	}
	id := w.did(from, s.ID(), what)
	w.exec.Go(func() {
		if err := do(context.Background(), s); err != nil {
			w.did(from, s.ID(), what+" failed: "+err.Error())
		}
	})
	accepted(rw, id)
}

// onJob makes the handler of a decision about a job. text is what the event says.
func (w *Window) onJob(op Op, text func(c *Command) string) handler {
	return func(rw http.ResponseWriter, r *http.Request, from caller) {
		b := w.find(r.PathValue("job"))
		if b == nil {
			missing(rw, "job")
			return
		}
		id := b.job.ID()
		var with struct {
			Limit   *int   `json:"limit"`
			Confirm string `json:"confirm"`
		}
		if !body(rw, r, &with) {
			return
		}
		c := Command{Op: op, Task: r.PathValue("task")}
		switch {
		case op == Retune && with.Limit == nil:
			http.Error(rw, `the body must be {"limit": n}; 0 starts nothing`, http.StatusBadRequest)
			return
		case op == Retune:
			c.Limit = *with.Limit
		case op == CancelJob && with.Confirm != id:
			http.Error(rw, `the body must be {"confirm": "the id of the job"}`, http.StatusBadRequest)
			return
		}
		err := b.job.Do(r.Context(), c)
		switch {
		case errors.Is(err, ErrNoTask):
			missing(rw, "task")
		case errors.Is(err, ErrOver):
			http.Error(rw, "the task or the job is over", http.StatusConflict)
		case errors.Is(err, ErrUnsupported):
			http.Error(rw, "this job cannot do that", http.StatusUnprocessableEntity)
		case err != nil:
			refuse(rw, err)
		default:
			accepted(rw, w.did(from, "", "job "+id+": "+text(&c)))
		}
	}
}

// steering has the endpoints of all changes.
func (w *Window) steering(mux *http.ServeMux) {
	change := func(pattern string, h handler) { mux.HandleFunc("POST "+pattern, w.changing(true, h)) }
	said := func(text string) func(*Command) string { return func(*Command) string { return text } }
	change("/api/approvals/{id}", w.decide)
	change("/api/sessions/{session}/interrupt", w.interrupt)
	change("/api/sessions/{session}/close", w.closes)
	change("/api/jobs/{job}/pause", w.onJob(Pause, said("paused")))
	change("/api/jobs/{job}/resume", w.onJob(Resume, said("resumed")))
	change("/api/jobs/{job}/cancel", w.onJob(CancelJob, said("canceled")))
	change("/api/jobs/{job}/retune", w.onJob(Retune, func(c *Command) string { return fmt.Sprintf("retuned to %d", c.Limit) }))
	change("/api/jobs/{job}/tasks/{task}/cancel", w.onJob(CancelTask, func(c *Command) string { return "task " + c.Task + " canceled" }))
	change("/api/jobs/{job}/tasks/{task}/requeue", w.onJob(RequeueTask, func(c *Command) string { return "task " + c.Task + " requeued" }))
	change("/api/accounts/{account}/park", w.park)
	change("/api/accounts/{account}/retune", w.retune)
}

// account is one that was used: to name one makes it.
func (w *Window) account(rw http.ResponseWriter, r *http.Request) *runtime.Account {
	label := r.PathValue("account")
	if !slices.ContainsFunc(w.rt.Accounts(), func(s runtime.AccountStat) bool { return s.Label == label }) {
		missing(rw, "account")
		return nil
	}
	return w.rt.Account(label)
}

// maxPark is the longest time for which an account is parked.
const maxPark = 30 * 24 * time.Hour

// park blocks starts of an account for a time; 0 removes the block.
func (w *Window) park(rw http.ResponseWriter, r *http.Request, from caller) {
	var with struct {
		ForMS int64  `json:"for_ms"`
		Why   string `json:"why"`
	}
	if !body(rw, r, &with) {
		return
	}
	if with.ForMS < 0 || with.ForMS > maxPark.Milliseconds() {
		http.Error(rw, "for_ms is from 0 to 30 days", http.StatusBadRequest)
		return
	}
	a := w.account(rw, r)
	if a == nil {
		return
	}
	label, d := r.PathValue("account"), time.Duration(with.ForMS)*time.Millisecond
	if d == 0 {
		a.Park(time.Time{}, "")
		accepted(rw, w.did(from, "", "account "+label+": unparked"))
		return
	}
	why := "by hand, " + from.who
	if with.Why != "" {
		why += ": " + with.Why
	}
	a.Park(w.clock.Now().Add(d), why)
	accepted(rw, w.did(from, "", fmt.Sprintf("account %s: parked for %v", label, d)))
}

// retune fixes how much may run of an account: 0 pauses, a negative number adapts again.
func (w *Window) retune(rw http.ResponseWriter, r *http.Request, from caller) {
	var with struct {
		Limit *int `json:"limit"`
	}
	if !body(rw, r, &with) {
		return
	}
	if with.Limit == nil {
		http.Error(rw, `the body must be {"limit": n}; 0 pauses, -1 adapts`, http.StatusBadRequest)
		return
	}
	a := w.account(rw, r)
	if a == nil {
		return
	}
	a.Retune(w.clock.Now(), *with.Limit)
	accepted(rw, w.did(from, "", fmt.Sprintf("account %s: retuned to %d", r.PathValue("account"), *with.Limit)))
}
