package ui

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strconv"

	"github.com/agent-troupe/troupe/runtime"
)

// maxPart is how much of a transcript one answer reads, in bytes. A line may be longer.
const maxPart = 1 << 20

// withContent lets those in who may read what agents and people have said.
func (w *Window) withContent(next handler) handler {
	return func(rw http.ResponseWriter, r *http.Request, from caller) {
		if !w.cfg.Access.Content {
			refuse(rw, forbidden("this window was opened without Access.Content: no prompt, answer or transcript is shown"))
			return
		}
		next(rw, r, from)
	}
}

// messages answers with the last messages of a session, or those before one: the ones that were
// seen while it was watched and, before them, those that the agent has stored. find asks for more
// of them, up to the first that has a text.
func (w *Window) messages(rw http.ResponseWriter, r *http.Request, _ caller) {
	if s := w.here(rw, r, "messages"); s != nil {
		w.messagesOf(rw, r, s)
	}
}

func (w *Window) messagesOf(rw http.ResponseWriter, r *http.Request, s *runtime.Session) {
	q := r.URL.Query()
	before, _ := strconv.ParseInt(q.Get("before"), 10, 64) // 0: the newest
	limit, _ := strconv.Atoi(q.Get("limit"))
	if limit < 1 || limit > keptLive {
		limit = keptLive
	}
	live := w.lives.of(s.ID())
	kept := live
	if before > 0 {
		kept = slices.DeleteFunc(slices.Clone(live), func(i item) bool { return i.Seq >= before })
	}
	if len(kept) >= limit && q.Get("find") == "" {
		writeJSON(rw, messagesPart{Messages: kept[len(kept)-limit:], More: true})
		return
	}
	old, more, place := w.stored(s, live, before, limit-len(kept), q.Get("find"))
	writeJSON(rw, messagesPart{append(old, kept...), more, place})
}

// here is the session of this program that the path names. Without one it answers the request: with what
// the program says that the request names, or that there is no such session.
func (w *Window) here(rw http.ResponseWriter, r *http.Request, what string) *runtime.Session {
	if w.passed(rw, r, what) {
		return nil
	}
	s := w.rt.Session(r.PathValue("session"))
	if s == nil {
		missing(rw, "session")
		return nil
	}
	return s
}

// of are the messages of a session that is watched.
func (l *lives) of(id string) []item {
	l.mu.Lock()
	one := l.all[id]
	l.mu.Unlock()
	if one == nil {
		return []item{}
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	return append([]item{}, one.kept...)
}

// timeline answers with the past of a session. Names of tools are the model's, and no more.
func (w *Window) timeline(rw http.ResponseWriter, r *http.Request, _ caller) {
	if s := w.here(rw, r, "timeline"); s != nil {
		writeJSON(rw, s.Timeline(r.Context()))
	}
}

// transcript answers with a part of the transcript of a task, from a byte on, and where the
// next part begins.
func (w *Window) transcript(rw http.ResponseWriter, r *http.Request, _ caller) {
	b := w.jobOf(rw, r)
	if b == nil {
		return
	}
	at, _ := strconv.ParseInt(r.URL.Query().Get("at"), 10, 64) // 0: the beginning
	at = max(at, 0)
	f, err := b.job.Transcript(r.Context(), r.PathValue("task"), at)
	if errors.Is(err, fs.ErrNotExist) {
		http.Error(rw, "the task has no transcript, or has not begun", http.StatusNotFound)
		return
	}
	if err != nil {
		refuse(rw, err)
		return
	}
	defer func() { _ = f.Close() }()
	lines, next, err := part(f, at)
	if err != nil {
		refuse(rw, err)
		return
	}
	writeJSON(rw, map[string]any{"lines": lines, "next": next})
}

// part reads the messages of a transcript from a place on, and where the next part begins:
// nil at the end of the file. A line without an end is still being written.
func part(f io.Reader, at int64) (lines []item, next *int64, err error) {
	lines = []item{}
	in := bufio.NewReaderSize(f, 64<<10)
	for start := at; at-start < maxPart; {
		raw, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return lines, nil, nil
		}
		if err != nil {
			return nil, nil, err
		}
		if one, ok := itemOf(raw); ok {
			one.Seq = at
			lines = append(lines, one)
		}
		at += int64(len(raw))
	}
	return lines, &at, nil
}
