package inspect

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/runtime"
)

// Report is a runtime, as a host shows it. Its JSON form is stable, like that of
// [runtime.Tree].
type Report struct {
	Host Host         `json:"host"` // the process that answered
	Tree runtime.Tree `json:"tree"` // its sessions
}

// Host is the process that runs the sessions.
type Host struct {
	PID     int    `json:"pid"`     // process id
	Program string `json:"program"` // name of the program's file
	Socket  string `json:"socket"`  // path of the socket by which the host was asked; [Fetch] sets it
}

// Event is one event of a session in the answer to /api/events.
type Event struct {
	At      time.Time `json:"at"`      // when the event happened, by the runtime's clock
	Session string    `json:"session"` // the runtime's id of the session
	Type    string    `json:"type"`    // name of the type in package session, such as StateChanged
	Level   string    `json:"level"`   // DEBUG, INFO, WARN or ERROR
	Text    string    `json:"text"`    // what happened; may have text of the agent

	Seq     uint64 `json:"seq,omitempty"`      // number of the record in its runtime, which grows; see session.EventRecord
	Actor   string `json:"actor,omitempty"`    // the actor that it is about: its path, or its name and incarnation
	Cause   string `json:"cause,omitempty"`    // why; may have text of the agent
	DelayMS int64  `json:"delay_ms,omitempty"` // until the restart, the next process, attempt or probe, in milliseconds
	By      string `json:"by,omitempty"`       // who did it, of a Steered event
}

// Handler returns a handler that shows the runtime, for reading only:
//
//	/                    all sessions, as a page of plain text
//	/session/{id}        one session, as a page of plain text
//	/api/tree            all sessions: a [Report] as JSON
//	/api/session/{id}    one session: a [runtime.SessionTree] as JSON
//	/api/events          the events from now on, one [Event] in JSON per line, until the
//	                     client leaves or the runtime is shut down; ?session=ID selects
//	                     the events of one session
//
// The handler itself checks the Host, the Origin and the token of each request; see
// [Access]. A refused request is answered with 401 or 403 and the reason.
func Handler(rt *runtime.Runtime, access Access) http.Handler {
	v := &views{rt}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", v.page)
	mux.HandleFunc("GET /session/{id}", v.sessionPage)
	mux.HandleFunc("GET /api/tree", v.tree)
	mux.HandleFunc("GET /api/session/{id}", v.session)
	mux.HandleFunc("GET /api/events", v.events)
	return access.Protect(mux)
}

// views answers the requests that are allowed. An error of a write means that the client
// has left.
type views struct{ rt *runtime.Runtime }

func (v *views) report(r *http.Request) *Report {
	return &Report{Host{PID: os.Getpid(), Program: filepath.Base(os.Args[0])}, v.rt.Tree(r.Context())}
}

func (v *views) page(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_ = v.report(r).WriteText(w)
}

func (v *views) sessionPage(w http.ResponseWriter, r *http.Request) {
	if s := v.found(w, r); s != nil {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_ = WriteSession(w, s)
	}
}

func (v *views) tree(w http.ResponseWriter, r *http.Request) { writeJSON(w, v.report(r)) }

func (v *views) session(w http.ResponseWriter, r *http.Request) {
	if s := v.found(w, r); s != nil {
		writeJSON(w, s)
	}
}

// found is the session that the path names. If there is no such session it answers the
// request and returns nil.
func (v *views) found(w http.ResponseWriter, r *http.Request) *runtime.SessionTree {
	s := v.rt.Session(r.PathValue("id"))
	if s == nil {
		http.Error(w, "there is no session with this id, or it has ended", http.StatusNotFound)
		return nil
	}
	t := s.Tree(r.Context())
	return &t
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = encode(w, v)
}

// encode writes a value as one line of JSON that is harmless on a terminal, too.
func encode(w io.Writer, v any) error {
	raw, err := json.Marshal(v)
	if err == nil {
		_, err = w.Write(append(shown.JSON(raw), '\n'))
	}
	return err
}

func (v *views) events(w http.ResponseWriter, r *http.Request) {
	all := v.rt.Events(r.Context())
	if r.URL.Query().Has("session") {
		s := v.rt.Session(r.URL.Query().Get("session"))
		if s == nil {
			http.Error(w, "there is no session with this id, or it has ended", http.StatusNotFound)
			return
		}
		all = s.Events(r.Context())
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	flush := http.NewResponseController(w).Flush
	if flush() != nil { // the client learns that it is heard
		return
	}
	for e := range all {
		if encode(w, EventOf(e)) != nil || flush() != nil {
			return
		}
	}
}
