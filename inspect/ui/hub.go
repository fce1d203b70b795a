package ui

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/session"
)

const (
	keptFrames = 4096             // a reader that comes back finds so many
	maxBehind  = 1024             // frames that wait for one reader
	maxReaders = 256              // of one window
	linger     = 10 * time.Second // the hub runs on so long after its last reader, so that it can come back
)

// frame is one message of the stream, encoded once for all readers.
type frame struct {
	id      int64
	kind    string
	session string // of message and delta, which only readers of this session get
	data    []byte
}

// hub hands frames to every reader. To hand one over never waits for a reader. It runs only
// while there are readers, and a moment longer.
type hub struct {
	clock session.Clock
	exec  session.Executor
	run   func(ctx context.Context) // makes frames until ctx ends

	mu      sync.Mutex
	seq     int64
	ring    []*frame // the last frames, the oldest at ring[next] once it is full
	next    int
	readers []*reader
	stop    context.CancelFunc // of run; nil while it does not run
	over    chan struct{}      // closed when run has returned
	idle    session.Timer      // ends run
	closed  bool
}

// newHub returns a hub whose numbers are above those of every earlier process: a reader that
// comes back to another process must not resume there.
func newHub(clock session.Clock, exec session.Executor, run func(context.Context)) *hub {
	return &hub{clock: clock, exec: exec, run: run, seq: clock.Now().UnixMilli() * 1000}
}

// reader is one who reads the stream.
type reader struct {
	sessions []string // whose messages it gets, too
	login    *login

	mu     sync.Mutex
	queue  []*frame
	missed []*frame      // those that it has missed before it came, at most keptFrames
	lost   string        // why it has to fetch everything again; "" if it does not have to
	at     int64         // the last frame that it has lost
	wake   chan struct{} // not nil while the reader waits
	ended  bool
}

// join adds a reader. since is the last frame that it has seen, 0 for none. It returns where
// the reader begins; ok is false if there are too many readers.
func (h *hub) join(r *reader, since int64) (at int64, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(h.readers) >= maxReaders {
		return 0, false
	}
	if at = h.seq; since > 0 {
		if missed, all := h.since(since); all {
			at = since
			r.missed = slices.DeleteFunc(missed, func(f *frame) bool { return !r.wants(f) })
		} else {
			r.lost, r.at = "the frames after your last one are no longer there", h.seq
		}
	}
	h.readers = append(h.readers, r)
	if h.idle != nil {
		h.idle.Stop()
		h.idle = nil
	}
	if h.stop == nil {
		h.begin()
	}
	return at, true
}

// begin starts to make frames; mu is held.
func (h *hub) begin() {
	ctx, stop := context.WithCancel(context.Background())
	before, over := h.over, make(chan struct{})
	h.stop, h.over = stop, over
	h.exec.Go(func() {
		defer close(over)
		if before != nil {
			_ = h.exec.Await(context.Background(), before) // the last run has been asked to end
		}
		h.run(ctx)
	})
}

// since returns the frames after one; all says whether none is missing. mu is held.
func (h *hub) since(id int64) (frames []*frame, all bool) {
	if id > h.seq || h.stop == nil {
		return nil, false
	}
	ordered := slices.Concat(h.ring[h.next:], h.ring[:h.next])
	if id == h.seq {
		return nil, true
	}
	if len(ordered) == 0 || id < ordered[0].id-1 {
		return nil, false
	}
	at, _ := slices.BinarySearchFunc(ordered, id+1, func(f *frame, id int64) int { return int(f.id - id) })
	return ordered[at:], true
}

// leave removes a reader. After the last one the hub stops, unless another one comes soon.
func (h *hub) leave(r *reader) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.readers = slices.DeleteFunc(h.readers, func(other *reader) bool { return other == r })
	if len(h.readers) > 0 || h.stop == nil || h.idle != nil {
		return
	}
	h.idle = h.clock.AfterFunc(linger, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.readers) == 0 {
			h.halt()
		}
	})
}

// halt stops what makes frames, and forgets those that there were; mu is held.
func (h *hub) halt() {
	if h.idle != nil {
		h.idle.Stop()
		h.idle = nil
	}
	if h.stop != nil {
		h.stop()
		h.stop, h.ring, h.next = nil, nil, 0
	}
}

// finish ends all readers and what makes frames.
func (h *hub) finish() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.halt()
	for _, r := range h.readers {
		r.end()
	}
}

// close is finish, and waits until nothing runs.
func (h *hub) close() {
	h.finish()
	h.mu.Lock()
	over := h.over
	h.mu.Unlock()
	if over != nil {
		_ = h.exec.Await(context.Background(), over) // it has been asked to end
	}
}

// drop ends the readers of a login.
func (h *hub) drop(l *login) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.readers {
		if r.login == l {
			r.end()
		}
	}
}

// watched are the sessions whose messages readers want.
func (h *hub) watched() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []string
	for _, r := range h.readers {
		for _, id := range r.sessions {
			if !slices.Contains(all, id) {
				all = append(all, id)
			}
		}
	}
	return all
}

// publish hands a frame to all readers, and returns its number. of is the session of a
// message, else "".
func (h *hub) publish(kind, of string, v any) int64 {
	data, err := encode(v)
	if err != nil { // of a job's own types; the page shows what it had
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seq++
	f := &frame{h.seq, kind, of, data}
	if h.stop == nil { // an action without a reader: only its number is wanted
		return f.id
	}
	if len(h.ring) < keptFrames {
		h.ring = append(h.ring, f)
	} else {
		h.ring[h.next] = f
		h.next = (h.next + 1) % keptFrames
	}
	for _, r := range h.readers {
		r.push(f)
	}
	return f.id
}

// wants reports whether a frame is for the reader.
func (r *reader) wants(f *frame) bool {
	return f.session == "" || slices.Contains(r.sessions, f.session)
}

// push hands a frame to the reader. One that is too far behind loses what it has not read.
func (r *reader) push(f *frame) {
	if !r.wants(f) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lost != "" { // it has not read that yet
		r.at = f.id
		return
	}
	if len(r.queue) >= maxBehind {
		r.queue, r.lost, r.at = nil, "you are 1,024 frames behind", f.id
	} else {
		r.queue = append(r.queue, f)
	}
	r.fire()
}

func (r *reader) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	r.fire()
}

// fire wakes the reader; mu is held.
func (r *reader) fire() {
	if r.wake != nil {
		close(r.wake)
		r.wake = nil
	}
}

// take waits for frames. lost is why there is a resync in their place, which has the number
// at. ok is false at the end.
func (r *reader) take(ctx context.Context, exec session.Executor) (frames []*frame, lost string, at int64, ok bool) {
	for {
		r.mu.Lock()
		switch {
		case r.ended:
			r.mu.Unlock()
			return nil, "", 0, false
		case len(r.missed) > 0:
			frames, r.missed = r.missed, nil
			r.mu.Unlock()
			return frames, "", 0, true
		case r.lost != "":
			lost, at, r.lost = r.lost, r.at, ""
			r.mu.Unlock()
			return nil, lost, at, true
		case len(r.queue) > 0:
			frames, r.queue = r.queue, nil
			r.mu.Unlock()
			return frames, "", 0, true
		}
		if r.wake == nil {
			r.wake = make(chan struct{})
		}
		wake := r.wake
		r.mu.Unlock()
		if exec.Await(ctx, wake) != nil {
			return nil, "", 0, false
		}
	}
}
