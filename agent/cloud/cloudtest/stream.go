package cloudtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// heartbeat is how often a stream sends a comment (documented: about 15 s).
const heartbeat = 15 * time.Second

// events is the body of a stream.
type events struct {
	s      *Server
	ctx    context.Context
	of     *conversation
	fault  *Fault
	next   int // of the log
	buf    []byte
	sent   int // bytes
	closed bool
}

func (s *Server) stream(ctx context.Context, r *Request, f *Fault) *events {
	id, _, _ := strings.Cut(strings.TrimPrefix(r.Path, "/sessions/"), "/")
	if plain, err := url.PathUnescape(id); err == nil {
		id = plain
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams++
	e := &events{s: s, ctx: ctx, of: s.conversation(id), fault: f}
	if after := r.Query.Get("after_id"); after != "" && !f.FromStart {
		for i := range e.of.log {
			if e.of.log[i].ID == after {
				e.next = i + 1
			}
		}
	}
	return e
}

// Close implements io.Closer.
func (e *events) Close() error {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	if !e.closed {
		e.closed = true
		e.s.streams--
	}
	return nil
}

// Read implements io.Reader.
func (e *events) Read(b []byte) (int, error) {
	for {
		if e.ctx.Err() != nil {
			return 0, context.Cause(e.ctx)
		}
		switch f := e.fault; {
		case f.ResetAt != 0 && e.sent >= max(f.ResetAt, 0):
			return 0, syscall.ECONNRESET
		case f.EndAt != 0 && e.sent >= max(f.EndAt, 0):
			return 0, io.EOF
		case f.SilentAt != 0 && e.sent >= max(f.SilentAt, 0):
			_ = e.s.exec().Await(e.ctx, nil) // the end of ctx
			return 0, context.Cause(e.ctx)
		}
		if n := e.take(b); n > 0 {
			if e.fault.Drip > 0 && !e.s.wait(e.ctx, e.fault.Drip) {
				return 0, context.Cause(e.ctx)
			}
			return n, nil
		}
		e.fill()
		if len(e.buf) > 0 {
			continue
		}
		e.s.mu.Lock()
		changed, more := e.of.changed, e.next < len(e.of.log)
		e.s.mu.Unlock()
		if more {
			continue
		}
		ctx, cancel := context.WithCancel(e.ctx)
		timer := e.s.clock().AfterFunc(heartbeat, cancel)
		err := e.s.exec().Await(ctx, changed)
		timer.Stop()
		cancel()
		if err != nil && e.ctx.Err() == nil {
			e.buf = append(e.buf, ": heartbeat\n\n"...)
		}
	}
}

// take moves bytes to b, up to the next fault.
func (e *events) take(b []byte) int {
	n := len(e.buf)
	for _, at := range []int{e.fault.ResetAt, e.fault.EndAt, e.fault.SilentAt} {
		if at > 0 {
			n = min(n, at-e.sent)
		}
	}
	if e.fault.Drip > 0 {
		n = min(n, 1)
	}
	n = copy(b, e.buf[:n])
	e.buf = e.buf[n:]
	e.sent += n
	return n
}

// fill puts the events of the log that were not sent into the buffer.
func (e *events) fill() {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	log := e.of.log[e.next:]
	e.next = len(e.of.log)
	for i := 0; i < len(log); i++ {
		if e.fault.Swapped && i+1 < len(log) && log[i+1].Name != "session.status_idle" && log[i].Data["turn_id"] == log[i+1].Data["turn_id"] {
			e.write(&log[i+1])
			e.write(&log[i])
			i++
			continue
		}
		e.write(&log[i])
	}
}

func (e *events) write(ev *Event) {
	data, err := json.Marshal(ev.Data)
	if err != nil {
		data = []byte("{}")
	}
	id := ""
	if ev.ID != "-" {
		id = "id: " + ev.ID + "\n"
	}
	times := 1
	if e.fault.Twice {
		times = 2
	}
	for range times {
		e.buf = fmt.Appendf(e.buf, "%sevent: %s\ndata: %s\n\n", id, ev.Name, data)
	}
}
