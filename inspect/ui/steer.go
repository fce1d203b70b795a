package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// did makes an event of what a person has done, and returns its number.
func (w *Window) did(who, session, what string) uint64 {
	seq := w.rt.Steered(session, who, what)
	if seq == 0 { // the session has ended meanwhile
		seq = w.rt.Steered("", who, what+" ("+session+")")
	}
	return seq
}

// steered is an event with who did it.
type steered struct {
	inspect.Event
	Who  string `json:"who,omitempty"`
	Host string `json:"host,omitempty"`
}

// accepted answers with the number of the event; that of another host is not known.
func accepted(rw http.ResponseWriter, id uint64) {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(http.StatusAccepted)
	_, _ = fmt.Fprintf(rw, "{\"id\":%d}\n", id) //nolint:gosec // a number
}

// goneError is an [ErrNoTask] about something else.
type goneError struct{ what string }

func (e *goneError) Error() string { return "there is no " + e.what + " with this id, or it has ended" }
func (e *goneError) Unwrap() error { return ErrNoTask }

// carry carries out a decision, here or at the host that the request names, and answers.
func (w *Window) carry(rw http.ResponseWriter, r *http.Request, from caller, job string, c *Command) {
	c.Who = from.who
	h, named := w.there(rw, r)
	if named && h == nil {
		return
	}
	var b *book
	if job != "" {
		id := ""
		if named {
			id = h.ID()
		}
		if b = w.find(r.Context(), id, job); b == nil {
			missing(rw, "job")
			return
		}
	}
	var id uint64
	var err error
	switch {
	case named && b != nil:
		err = b.job.Do(r.Context(), *c)
	case named:
		err = h.Do(r.Context(), *c)
	default:
		id, err = w.steer(r.Context(), job, c)
	}
	var gone *goneError
	switch {
	case errors.As(err, &gone):
		missing(rw, gone.what)
	case errors.Is(err, ErrNoTask) && c.Task != "":
		missing(rw, "task")
	case errors.Is(err, ErrNoTask):
		http.Error(rw, err.Error(), http.StatusNotFound)
	case errors.Is(err, ErrOver):
		http.Error(rw, "the task or the job is over", http.StatusConflict)
	case errors.Is(err, ErrUnsupported) && job != "":
		http.Error(rw, "this job cannot do that", http.StatusUnprocessableEntity)
	case errors.Is(err, ErrUnsupported):
		http.Error(rw, "that cannot be changed at this host", http.StatusUnprocessableEntity)
	case err != nil:
		refuse(rw, err)
	default:
		accepted(rw, id)
	}
}

// steer carries out a decision in this program, and returns the number of its event.
func (w *Window) steer(ctx context.Context, job string, c *Command) (uint64, error) {
	if job != "" {
		return w.steerJob(ctx, job, c)
	}
	switch c.Op {
	case Interrupt:
		return w.onSession(c, "interrupt of the turn", func(ctx context.Context, s *runtime.Session) error {
			_, err := s.Stop(ctx, session.StopScope{Turn: true})
			return err
		})
	case CloseSession:
		return w.onSession(c, "close", func(ctx context.Context, s *runtime.Session) error { return s.Close(ctx) })
	case ParkAccount, RetuneAccount:
		return w.onAccount(c)
	default:
		return 0, ErrUnsupported
	}
}

func (w *Window) steerJob(ctx context.Context, job string, c *Command) (uint64, error) {
	j := w.ownJob(job)
	if j == nil {
		return 0, &goneError{"job"}
	}
	text, session := "job "+job+": ", ""
	switch c.Op {
	case Pause, Resume:
		text += string(c.Op) + "d"
	case Retune:
		text += fmt.Sprintf("retuned to %d", c.Limit)
	case CancelJob:
		text += "canceled"
	case CancelTask:
		text += "task " + c.Task + " canceled"
	case RequeueTask:
		text += "task " + c.Task + " requeued"
	case Decide: // from another window
		c.Verdict.Who = c.Who
		text = c.Verdict.text() + " a call"
		if s, err := j.State(ctx); err == nil {
			if at := slices.IndexFunc(s.Approvals, func(a Approval) bool { return a.ID == c.Approval }); at >= 0 {
				a := &s.Approvals[at]
				text, session = strings.TrimSuffix(c.Verdict.text()+" "+a.Tool+" of "+a.Task, " of "), a.Session
			}
		}
	default:
		return 0, ErrUnsupported
	}
	if err := j.Do(ctx, *c); err != nil {
		return 0, err
	}
	return w.did(c.Who, session, text), nil
}

// onSession asks a session for something that takes a while: the answer is the event that it
// was asked, and a failure is another event.
func (w *Window) onSession(c *Command, what string, do func(context.Context, *runtime.Session) error) (uint64, error) {
	s, who := w.rt.Session(c.Session), c.Who
	if s == nil {
		return 0, &goneError{"session"}
	}
	id := w.did(who, s.ID(), what)
	w.exec.Go(func() {
		if err := do(context.Background(), s); err != nil {
			w.did(who, s.ID(), what+" failed: "+err.Error())
		}
	})
	return id, nil
}

// onAccount changes an account that was used: to name one makes it.
func (w *Window) onAccount(c *Command) (uint64, error) {
	if !slices.ContainsFunc(w.rt.Accounts(), func(s runtime.AccountStat) bool { return s.Label == c.Account }) {
		return 0, &goneError{"account"}
	}
	a, now := w.rt.Account(c.Account), w.clock.Now()
	text := "account " + c.Account + ": "
	switch {
	case c.Op == RetuneAccount:
		a.Retune(now, c.Limit)
		text += fmt.Sprintf("retuned to %d", c.Limit)
	case c.For == 0:
		a.Park(time.Time{}, "")
		text += "unparked"
	default:
		why := "by hand, " + c.Who
		if c.Why != "" {
			why += ": " + c.Why
		}
		a.Park(now.Add(c.For), why)
		text += fmt.Sprintf("parked for %v", c.For)
	}
	return w.did(c.Who, "", text), nil
}

// onJob makes the handler of a decision about a job.
func (w *Window) onJob(op Op) handler {
	return func(rw http.ResponseWriter, r *http.Request, from caller) {
		id := r.PathValue("job")
		if w.cfg.Hosts == nil && w.find(r.Context(), "", id) == nil {
			missing(rw, "job")
			return
		}
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
		w.carry(rw, r, from, id, &c)
	}
}

// onHost makes the handler of a decision about a session or a host.
func (w *Window) onHost(op Op) handler {
	return func(rw http.ResponseWriter, r *http.Request, from caller) {
		w.carry(rw, r, from, "", &Command{Op: op, Session: r.PathValue("session")})
	}
}

// steering has the endpoints of all changes.
func (w *Window) steering(mux *http.ServeMux) {
	change := func(pattern string, h handler) { mux.HandleFunc("POST "+pattern, w.changing(true, h)) }
	change("/api/approvals/{id}", w.decide)
	change("/api/sessions/{session}/interrupt", w.onHost(Interrupt))
	change("/api/sessions/{session}/close", w.onHost(CloseSession))
	change("/api/jobs/{job}/pause", w.onJob(Pause))
	change("/api/jobs/{job}/resume", w.onJob(Resume))
	change("/api/jobs/{job}/cancel", w.onJob(CancelJob))
	change("/api/jobs/{job}/retune", w.onJob(Retune))
	change("/api/jobs/{job}/tasks/{task}/cancel", w.onJob(CancelTask))
	change("/api/jobs/{job}/tasks/{task}/requeue", w.onJob(RequeueTask))
	change("/api/accounts/{account}/park", w.park)
	change("/api/accounts/{account}/retune", w.retune)
	change("/api/host/drain", w.onHost(Drain))
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
	w.carry(rw, r, from, "", &Command{Op: ParkAccount, Account: r.PathValue("account"), For: time.Duration(with.ForMS) * time.Millisecond, Why: with.Why})
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
	w.carry(rw, r, from, "", &Command{Op: RetuneAccount, Account: r.PathValue("account"), Limit: *with.Limit})
}
