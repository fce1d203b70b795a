package ui

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"time"

	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/runtime"
)

// Shared is the window for other windows of this user, as troupe top --ui is one: a handler for a
// Unix socket, which answers what [inspect.Handler] does, too.
//
//	server, err := inspect.ListenWith(w.Shared(), inspect.Config{})
//
// Config.Access says what others may see and change there.
func (w *Window) Shared() http.Handler {
	socket := inspect.Access{} // requests by a Unix socket, and no others
	mux := http.NewServeMux()
	mux.Handle("/", inspect.Handler(w.rt, socket))
	mux.HandleFunc("GET /window/history", w.sharedHistory)
	mux.HandleFunc("GET /window/jobs", w.sharedJobs)
	mux.HandleFunc("GET /window/jobs/{job}", w.sharedJob)
	mux.HandleFunc("GET /window/jobs/{job}/transcript", w.sharedTranscript)
	mux.HandleFunc("GET /window/sessions/{session}/messages", w.sharedSession(true, w.messagesOf))
	mux.HandleFunc("GET /window/sessions/{session}/options", w.sharedSession(true, func(rw http.ResponseWriter, _ *http.Request, s *runtime.Session) { writeJSON(rw, s.Options()) }))
	mux.HandleFunc("GET /window/sessions/{session}/timeline", w.sharedSession(false, func(rw http.ResponseWriter, r *http.Request, s *runtime.Session) {
		writeJSON(rw, s.Timeline(r.Context()))
	}))
	mux.HandleFunc("GET /window/sessions/{session}/follow", w.sharedSession(true, w.sharedFollow))
	mux.HandleFunc("POST /window/do", w.sharedDo)
	return socket.Protect(mux)
}

func (w *Window) sharedHistory(rw http.ResponseWriter, r *http.Request) {
	d, err := time.ParseDuration(r.URL.Query().Get("window"))
	if err != nil {
		http.Error(rw, "window is a duration", http.StatusBadRequest)
		return
	}
	writeJSON(rw, w.rt.History(d))
}

// own are the jobs of this program, with the calls of its desk as one more.
func (w *Window) own() (jobs []Job) {
	if w.cfg.Jobs != nil {
		jobs = append(jobs, w.cfg.Jobs()...)
	}
	if w.cfg.Desk != nil {
		jobs = append(jobs, deskAsJob{w.cfg.Desk})
	}
	return jobs
}

func (w *Window) ownJob(id string) Job {
	for _, j := range w.own() {
		if j.ID() == id {
			return j
		}
	}
	return nil
}

func (w *Window) sharedJobs(rw http.ResponseWriter, _ *http.Request) {
	ids := []string{}
	for _, j := range w.own() {
		ids = append(ids, j.ID())
	}
	writeJSON(rw, ids)
}

func (w *Window) sharedJob(rw http.ResponseWriter, r *http.Request) {
	j := w.ownJob(r.PathValue("job"))
	if j == nil {
		missing(rw, "job")
		return
	}
	s, err := j.State(r.Context())
	if err != nil {
		refuse(rw, err)
		return
	}
	for i := range s.Approvals {
		s.Approvals[i] = w.shown(s.Approvals[i])
	}
	writeJSON(rw, s)
}

func (w *Window) sharedTranscript(rw http.ResponseWriter, r *http.Request) {
	if !w.cfg.Access.Content {
		refuse(rw, forbidden("that program shows no transcript: its window has no Access.Content"))
		return
	}
	j := w.ownJob(r.PathValue("job"))
	if j == nil {
		missing(rw, "job")
		return
	}
	at, _ := strconv.ParseInt(r.URL.Query().Get("at"), 10, 64) // else from the beginning
	f, err := j.Transcript(r.Context(), r.URL.Query().Get("task"), max(at, 0))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		missing(rw, "transcript")
		return
	case err != nil:
		refuse(rw, err)
		return
	}
	defer func() { _ = f.Close() }()
	_, _ = io.Copy(rw, f) // an error means that the client has left
}

func (w *Window) sharedDo(rw http.ResponseWriter, r *http.Request) {
	var c Command
	r.Body = http.MaxBytesReader(rw, r.Body, maxBody)
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
		http.Error(rw, "the body is not a command: "+err.Error(), http.StatusBadRequest)
		return
	}
	if !w.cfg.Access.Steer {
		writeJSON(rw, doneOf(forbidden("that program lets nothing be changed: its window has no Access.Steer")))
		return
	}
	_, err := w.steer(r.Context(), r.URL.Query().Get("job"), &c)
	writeJSON(rw, doneOf(err))
}

// deskAsJob is a desk for another window. Its calls are what it has.
type deskAsJob struct{ desk *Desk }

// ID implements [Job].
func (d deskAsJob) ID() string { return deskJob }

// State implements [Job].
func (d deskAsJob) State(context.Context) (JobState, error) {
	calls := d.desk.waiting()
	for i := range calls {
		calls[i].ID = calls[i].ID[len(deskJob)+1:]
	}
	return JobState{Summary: struct{}{}, Approvals: calls}, nil
}

// Transcript implements [Job].
func (d deskAsJob) Transcript(context.Context, string, int64) (io.ReadCloser, error) {
	return nil, fs.ErrNotExist
}

// Do implements [Job].
func (d deskAsJob) Do(_ context.Context, c Command) error {
	if c.Op != Decide {
		return ErrUnsupported
	}
	return d.desk.decide(callID(deskJob, c.Approval), &c.Verdict)
}
