package ui

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxDecided is how many answers are remembered, for those who come second.
const maxDecided = 256

// decided is the answer that a call has got.
type decided struct {
	ID     string    `json:"id"`
	Host   string    `json:"host,omitempty"`
	Allow  *bool     `json:"allow,omitempty"` // not known of a call that was answered elsewhere, or is gone
	Who    string    `json:"who,omitempty"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`
}

// answers are those that this window has given.
type answers struct {
	mu    sync.Mutex
	given []*decided               // the oldest first
	under map[string]chan struct{} // calls that are being answered; closed at the end of that
}

// of returns the answer that a call has got here, or nil, and whether it is being answered here.
func (a *answers) of(id string) (d *decided, busy bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.find(id), a.under[id] != nil
}

func (a *answers) find(id string) *decided {
	if at := slices.IndexFunc(a.given, func(d *decided) bool { return d.Host+"/"+d.ID == id }); at >= 0 {
		return a.given[at]
	}
	return nil
}

// begin claims a call. Without an error the caller calls end.
func (a *answers) begin(ctx context.Context, w *Window, id string) (*decided, error) {
	for {
		a.mu.Lock()
		if d := a.find(id); d != nil {
			a.mu.Unlock()
			return d, ErrDecided
		}
		first, busy := a.under[id]
		if !busy {
			if a.under == nil {
				a.under = map[string]chan struct{}{}
			}
			a.under[id] = make(chan struct{})
			a.mu.Unlock()
			return nil, nil
		}
		a.mu.Unlock()
		if err := w.exec.Await(ctx, first); err != nil {
			return nil, err
		}
	}
}

// end keeps the answer, if there is one, and lets the next one try.
func (a *answers) end(id string, d *decided) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if d != nil {
		if len(a.given) >= maxDecided {
			a.given = slices.Delete(a.given, 0, 1)
		}
		a.given = append(a.given, d)
	}
	close(a.under[id])
	delete(a.under, id)
}

// callID is the id of a call in addresses: two jobs may have tasks and calls that are alike.
func callID(job, id string) string { return job + ":" + id }

// decide answers a call: {allow, input, reason}.
func (w *Window) decide(rw http.ResponseWriter, r *http.Request, from caller) {
	var v Verdict
	if !body(rw, r, &v) {
		return
	}
	if v.Input != nil && (!v.Allow || !isObject(v.Input)) {
		http.Error(rw, "input is a JSON object, of a call that is allowed", http.StatusBadRequest)
		return
	}
	v.Who = from.who
	id, host := r.PathValue("id"), r.URL.Query().Get("host")
	key := host + "/" + id
	had, err := w.answers.begin(r.Context(), w, key)
	if had != nil {
		conflict(rw, had)
		return
	}
	if err != nil {
		return // the client has left
	}
	var d *decided
	defer func() { w.answers.end(key, d) }()
	tool, session, err := w.answer(r.Context(), host, id, &v)
	var first *DecidedError
	switch {
	case errors.As(err, &first): // elsewhere, such as by a command
		d = &decided{ID: id, Host: host, Allow: &first.Verdict.Allow, Who: first.Verdict.Who, At: first.At, Reason: first.Verdict.Reason}
		conflict(rw, d)
		return
	case errors.Is(err, ErrDecided), errors.Is(err, ErrOver), errors.Is(err, ErrNoTask):
		http.Error(rw, "the call does not wait any more: it was answered elsewhere, withdrawn, or its time is over", http.StatusGone)
		return
	case errors.Is(err, ErrUnsupported):
		http.Error(rw, "this call cannot be answered like that here", http.StatusUnprocessableEntity)
		return
	case err != nil:
		refuse(rw, err)
		return
	}
	d = &decided{ID: id, Host: host, Allow: &v.Allow, Who: from.who, At: w.clock.Now(), Reason: v.Reason}
	w.hub.publish("decided", "", d)
	if host == "" {
		w.did(from.who, session, v.text()+" "+tool)
	}
	writeJSON(rw, d)
}

// text is what an event says of the answer.
func (v *Verdict) text() string {
	text := "denied"
	if v.Allow {
		text = "allowed"
	}
	if v.Input != nil {
		text += " with changed input"
	}
	return text
}

// conflict answers with the answer that counts.
func conflict(rw http.ResponseWriter, d *decided) {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(http.StatusConflict)
	raw, _ := encode(d)  // plain fields
	_, _ = rw.Write(raw) //nolint:gosec // JSON
}

// answer gives the answer to who waits for it.
func (w *Window) answer(ctx context.Context, host, id string, v *Verdict) (tool, session string, err error) {
	job, call, _ := strings.Cut(id, ":")
	if host == "" && job == deskJob && w.cfg.Desk != nil {
		list := w.cfg.Desk.waiting()
		at := slices.IndexFunc(list, func(a Approval) bool { return a.ID == id })
		if at < 0 {
			return "", "", ErrDecided
		}
		return list[at].Tool, list[at].Session, w.cfg.Desk.decide(id, v)
	}
	b := w.find(ctx, host, job)
	if b == nil {
		return "", "", ErrDecided
	}
	if err := b.look(ctx); err != nil {
		return "", "", err
	}
	list := b.waiting()
	at := slices.IndexFunc(list, func(a Approval) bool { return a.ID == id })
	if at < 0 { // the job may know who has answered
		if err := b.job.Do(ctx, Command{Op: Decide, Approval: call, Verdict: *v, Who: v.Who}); err != nil {
			return "", "", err
		}
		return "a call", "", nil
	}
	return list[at].Tool + " of " + list[at].Task, list[at].Session, b.job.Do(ctx, Command{Op: Decide, Approval: call, Verdict: *v, Who: v.Who})
}

// body reads the JSON of a change. An empty body is {}.
func body(rw http.ResponseWriter, r *http.Request, to any) bool {
	in := json.NewDecoder(r.Body)
	in.DisallowUnknownFields()
	if err := in.Decode(to); err != nil && r.ContentLength != 0 {
		http.Error(rw, "the body is not the JSON that is expected: "+err.Error(), http.StatusBadRequest)
		return false
	}
	return true
}
