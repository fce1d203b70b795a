package control

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/inspect"
)

// Listen opens the socket or the port that cfg names for the job; inspect.Server.Serve
// then answers. An empty cfg is the socket of the job's directory, [SocketOf]. The errors
// are those of [inspect.Listen].
func Listen(h *fleet.Handle, dir string, cfg inspect.Config) (*inspect.Server, error) {
	if cfg.Socket == "" && cfg.Address == "" {
		var err error
		if cfg.Socket, err = SocketOf(dir); err != nil {
			return nil, err
		}
	}
	return inspect.ListenWith(Handler(h, inspect.Access{Token: cfg.Token}), cfg)
}

// Handler returns a handler that shows a job, and decides about it:
//
//	GET  /api/job                   a [fleet.Snapshot] as JSON
//	POST /api/job/pause
//	POST /api/job/resume
//	POST /api/job/retune/{n}        run n attempts at the same time
//	POST /api/task/{id}/cancel
//	POST /api/task/{id}/requeue
//	POST /api/task/{id}/on-accept   run Job.OnAccept once more
//	GET  /api/approvals              the calls that wait for a person, a list of [fleet.Approval]
//	POST /api/approval/{id}/allow
//	POST /api/approval/{id}/deny     ?reason=TEXT for the model
//
// An answer to a POST is 200 when the decision is durable, 404 for a task that does not
// exist, 409 for one that has its result, 422 for
// a call that does not wait, 412 for a task that was not accepted, 425 for one whose command
// runs already, 410 for a job that has ended, and else has the
// error. The handler itself checks the Host, the Origin and the token of each request; see
// [inspect.Access].
func Handler(h *fleet.Handle, access inspect.Access) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/job", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(h.Snapshot()) // an error means that the client has left
	})
	mux.HandleFunc("POST /api/job/pause", func(w http.ResponseWriter, _ *http.Request) { h.Pause(); answer(w, nil) })
	mux.HandleFunc("POST /api/job/resume", func(w http.ResponseWriter, _ *http.Request) { h.Unpause(); answer(w, nil) })
	mux.HandleFunc("POST /api/job/retune/{n}", func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.PathValue("n"))
		if err != nil || n < 1 {
			http.Error(w, "the number of attempts must be from 1 on; pause the job to start nothing", http.StatusBadRequest)
			return
		}
		h.Retune(n)
		answer(w, nil)
	})
	mux.HandleFunc("POST /api/task/{id}/cancel", func(w http.ResponseWriter, r *http.Request) {
		answer(w, h.CancelTask(r.Context(), r.PathValue("id")))
	})
	mux.HandleFunc("POST /api/task/{id}/requeue", func(w http.ResponseWriter, r *http.Request) {
		answer(w, h.Requeue(r.Context(), r.PathValue("id")))
	})
	mux.HandleFunc("POST /api/task/{id}/on-accept", func(w http.ResponseWriter, r *http.Request) {
		answer(w, h.RunOnAccept(r.Context(), r.PathValue("id")))
	})
	mux.HandleFunc("GET /api/approvals", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(append([]fleet.Approval{}, h.Approvals()...))
	})
	mux.HandleFunc("POST /api/approval/{id}/allow", func(w http.ResponseWriter, r *http.Request) {
		answer(w, h.Decide(r.Context(), r.PathValue("id"), true, ""))
	})
	mux.HandleFunc("POST /api/approval/{id}/deny", func(w http.ResponseWriter, r *http.Request) {
		answer(w, h.Decide(r.Context(), r.PathValue("id"), false, r.URL.Query().Get("reason")))
	})
	return access.Protect(mux)
}

func answer(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	switch {
	case err == nil:
		w.WriteHeader(http.StatusOK)
		return
	case errors.Is(err, fleet.ErrNoTask):
		code = http.StatusNotFound
	case errors.Is(err, fleet.ErrNoApproval):
		code = http.StatusUnprocessableEntity
	case errors.Is(err, fleet.ErrNotAccepted):
		code = http.StatusPreconditionFailed
	case errors.Is(err, fleet.ErrOnAcceptRuns):
		code = http.StatusTooEarly
	case errors.Is(err, fleet.ErrTaskOver):
		code = http.StatusConflict
	case errors.Is(err, fleet.ErrJobOver):
		code = http.StatusGone
	}
	http.Error(w, err.Error(), code)
}
