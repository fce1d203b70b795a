package ui

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// stallLimit is how long one write to a reader may take. A reader that takes nothing for so
// long is gone, or stands still in a debugger: it can come back.
const stallLimit = 30 * time.Second

// maxWatched is the most sessions whose messages one reader gets.
const maxWatched = 16

// events is the one stream of a page, as server-sent events.
func (w *Window) events(rw http.ResponseWriter, r *http.Request, from caller) {
	since, _ := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64) // 0: from now on
	me := &reader{login: from.login}
	if w.cfg.Access.Content {
		all := r.URL.Query()["session"] // of several tabs of a browser, which share a stream
		me.sessions = all[:min(len(all), maxWatched)]
	}
	at, ok := w.hub.join(me, since)
	if !ok {
		http.Error(rw, "too many readers of the stream, or the window is closed", http.StatusServiceUnavailable)
		return
	}
	defer w.hub.leave(me)
	h := rw.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("X-Accel-Buffering", "no") // a proxy must not keep it back
	out := &outlet{w: w, rw: rw, to: http.NewResponseController(rw)}
	_ = out.to.SetWriteDeadline(time.Time{}) // the server may have one for whole answers
	greeting, err := encode(w.greeting(from, at))
	if err != nil || !out.write(&frame{id: at, kind: "hello", data: greeting}) || !out.flush() {
		return
	}
	for {
		frames, lost, at, ok := me.take(r.Context(), w.exec)
		if !ok {
			return
		}
		if lost != "" {
			reason, err := encode(map[string]string{"reason": lost})
			if err != nil || !out.write(&frame{id: at, kind: "resync", data: reason}) {
				return
			}
		}
		for _, f := range frames {
			if !out.write(f) {
				return
			}
		}
		if !out.flush() {
			return
		}
	}
}

// outlet writes frames to one reader.
type outlet struct {
	w   *Window
	rw  http.ResponseWriter
	to  *http.ResponseController
	buf bytes.Buffer
}

// write keeps a frame for the next flush, or flushes if there is much.
func (o *outlet) write(f *frame) bool {
	_, _ = fmt.Fprintf(&o.buf, "id: %d\nevent: %s\ndata: ", f.id, f.kind) // a buffer does not fail
	o.buf.Write(f.data)
	o.buf.WriteString("\n\n")
	return o.buf.Len() < 64<<10 || o.flush()
}

// flush sends what was written, and reports whether the reader is there. The clock ends a
// write that takes too long.
func (o *outlet) flush() bool {
	late := o.w.clock.AfterFunc(stallLimit, func() { _ = o.to.SetWriteDeadline(time.Unix(1, 0)) })
	defer late.Stop()
	_, err := o.rw.Write(o.buf.Bytes())
	o.buf.Reset()
	return err == nil && o.to.Flush() == nil
}
