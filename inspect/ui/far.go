package ui

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/runtime"
)

// Sessions of other programs: the window of a program answers what the page of a session asks, and this window
// passes it on. Both have Access.Content where that has what agents and people have said.

// sessionHost is a host whose sessions have more than its report.
type sessionHost interface {
	// session answers what the page of a session asks: messages, timeline or options.
	session(ctx context.Context, id, what string, q url.Values) (any, error)
	// follow yields the messages of a session as they come, until ctx ends, each returns false, or the session ends.
	follow(ctx context.Context, id string, each func(farFrame) bool) error
}

// farFrame is a frame of the stream of another window.
type farFrame struct {
	Kind string          `json:"kind"` // message or delta; watching: they come from now on; lost: frames are missing
	Data json.RawMessage `json:"data,omitempty"`
}

const (
	farPrefix = "host:"         // of the name of another program's session in the stream: host:ID/SESSION
	farAgain  = 2 * time.Second // until a stream that has ended is read again
	farLine   = 1 << 20         // bytes of a frame; a message has at most 2*maxMessage, and more with its escapes
)

// farName splits the name of a session of another program.
func farName(name string) (host, id string, ok bool) {
	rest, ok := strings.CutPrefix(name, farPrefix)
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, "/")
}

// sharedSession makes the handler for another window that asks about a session.
func (w *Window) sharedSession(content bool, answer func(http.ResponseWriter, *http.Request, *runtime.Session)) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		if content && !w.cfg.Access.Content {
			refuse(rw, forbidden("that program shows no transcript: its window has no Access.Content"))
			return
		}
		s := w.rt.Session(r.PathValue("session"))
		if s == nil {
			missing(rw, "session")
			return
		}
		answer(rw, r, s)
	}
}

// sharedFollow is the stream of one session for another window, as lines of JSON.
func (w *Window) sharedFollow(rw http.ResponseWriter, r *http.Request, s *runtime.Session) {
	me := &reader{sessions: []string{s.ID()}}
	if _, ok := w.hub.join(me, 0); !ok {
		http.Error(rw, "too many readers of the stream, or the window is closed", http.StatusServiceUnavailable)
		return
	}
	defer w.hub.leave(me)
	rw.Header().Set("Content-Type", "application/x-ndjson")
	out := &outlet{w: w, rw: rw, to: http.NewResponseController(rw)}
	_ = out.to.SetWriteDeadline(time.Time{}) // the server may have one for whole answers
	for out.flush() && w.rt.Session(s.ID()) == s {
		frames, lost, _, ok := me.take(r.Context(), w.exec)
		if !ok {
			return
		}
		if lost != "" {
			out.buf.WriteString("{\"kind\":\"lost\"}\n")
			_ = out.flush() // the last line
			return
		}
		for _, f := range frames {
			if f.session == "" {
				continue
			}
			if _, err := fmt.Fprintf(&out.buf, "{\"kind\":%q,\"data\":%s}\n", f.kind, f.data); err != nil || out.buf.Len() > 64<<10 && !out.flush() {
				return
			}
		}
	}
}

// session implements sessionHost.
func (s socketHost) session(ctx context.Context, id, what string, q url.Values) (answer any, err error) {
	switch what { // the pages rely on the form of it
	case "messages":
		answer = new(messagesPart)
	case "timeline":
		answer = new(runtime.Timeline)
	default:
		answer = new(map[string]any)
	}
	return answer, s.get(ctx, "/window/sessions/"+url.PathEscape(id)+"/"+what+"?"+q.Encode(), answer)
}

// messagesPart is a part of the messages of a session.
type messagesPart struct {
	Messages []item `json:"messages"`
	More     bool   `json:"more"`
	// Place is where the part begins, if that is before its first message.
	Place int64 `json:"place,omitempty"`
}

// follow implements sessionHost.
func (s socketHost) follow(ctx context.Context, id string, each func(farFrame) bool) error {
	resp, err := s.open(ctx, 0, http.MethodGet, "/window/sessions/"+url.PathEscape(id)+"/follow", nil)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if !each(farFrame{Kind: "watching"}) {
		return nil
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, farLine)
	for lines.Scan() {
		var f farFrame
		if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
			return fmt.Errorf("ui: %s: %w", s, err)
		}
		if !each(f) {
			return nil
		}
	}
	if err := lines.Err(); err != nil && ctx.Err() == nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("ui: %s: %w", s, err)
	}
	return nil
}

// passed answers with what another program says of its session. ok is false if the request is about this one.
func (w *Window) passed(rw http.ResponseWriter, r *http.Request, what string) (ok bool) {
	h, named := w.there(rw, r)
	if !named || h == nil {
		return named
	}
	of, knows := h.(sessionHost)
	if !knows {
		missing(rw, "session")
		return true
	}
	q := url.Values{}
	for _, name := range []string{"before", "limit", "find"} {
		if v := r.URL.Query().Get(name); v != "" {
			q.Set(name, v)
		}
	}
	answer, err := of.session(r.Context(), r.PathValue("session"), what, q)
	switch {
	case errors.Is(err, ErrUnsupported):
		missing(rw, "session")
	case err != nil:
		refuse(rw, err)
	default:
		writeJSON(rw, answer)
	}
	return true
}

// followFar passes on the messages of another program's session, until ctx ends. A program that does not let its
// sessions be read, or has no such session, is not asked again.
func (w *Window) followFar(ctx context.Context, name string) {
	host, id, _ := farName(name)
	for ctx.Err() == nil {
		var of sessionHost
		for _, h := range w.others.all(ctx, w) {
			if h.ID() == host {
				of, _ = h.(sessionHost)
			}
		}
		if of == nil {
			return
		}
		err := of.follow(ctx, id, func(f farFrame) bool { return w.passFrame(name, &f) && ctx.Err() == nil })
		if no := (*inspect.RefusedError)(nil); errors.Is(err, ErrUnsupported) || errors.As(err, &no) {
			return
		}
		w.pause(ctx, farAgain)
	}
}

// passFrame sends a frame under the name that the session has here.
func (w *Window) passFrame(name string, f *farFrame) bool {
	switch f.Kind {
	case "message":
		var m item
		if json.Unmarshal(f.Data, &m) != nil {
			return false
		}
		m.Session = name
		w.hub.publish(f.Kind, name, m)
	case "delta":
		var d delta
		if json.Unmarshal(f.Data, &d) != nil {
			return false
		}
		d.Session = name
		w.hub.publish(f.Kind, name, d)
	case "watching":
		w.begun(name)
	case "lost":
		w.hub.publish("resync", name, map[string]string{"reason": "messages came faster than they were read"})
	}
	return true
}
