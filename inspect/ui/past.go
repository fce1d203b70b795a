package ui

import (
	"net/http"
	"time"
)

// history answers with what the charts show of the past.
func (w *Window) history(rw http.ResponseWriter, r *http.Request, _ caller) {
	window := map[string]time.Duration{"": 15 * time.Minute, "15m": 15 * time.Minute, "3h": 3 * time.Hour, "24h": 24 * time.Hour}
	d, ok := window[r.URL.Query().Get("window")]
	if !ok {
		http.Error(rw, "window is 15m, 3h or 24h", http.StatusBadRequest)
		return
	}
	writeJSON(rw, w.rt.History(d))
}

// options answers with the options of a session as they were resolved, without secrets. They
// have prompts.
func (w *Window) options(rw http.ResponseWriter, r *http.Request, _ caller) {
	s := w.rt.Session(r.PathValue("session"))
	if s == nil {
		missing(rw, "session")
		return
	}
	writeJSON(rw, s.Options())
}
