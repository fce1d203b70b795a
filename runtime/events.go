package runtime

import (
	"context"
	"iter"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// eventQueue is how many events wait for one reader before the oldest go.
const eventQueue = 1024

// bus hands events to every reader. Publishing never blocks.
type bus struct {
	exec  kernel.Executor
	broke func(error) // reports the panic of a filter, on a separate task
	log   *handler    // nil without a logger
	from  slog.Level  // the lowest level that is logged

	readers atomic.Int32 // len(subs): without readers an event takes no lock

	mu    sync.Mutex
	seq   uint64                     // of the last record that readers got
	subs  map[string][]*subscription // by session; "" is of all sessions
	ended bool
}

type subscription struct {
	session string                          // "" for all
	want    func(*session.EventRecord) bool // nil: every event
	broken  bool                            // want has panicked; the lock of the bus guards it
	mu      sync.Mutex
	queue   []session.EventRecord
	wake    chan struct{}
	closed  bool
}

// record hands an event to the log alone.
func (b *bus) record(r session.EventRecord) {
	if b.log != nil && r.Event.Level() >= b.from {
		b.log.push(r)
	}
}

func (b *bus) publish(r session.EventRecord) (seq uint64) {
	b.record(r)
	if _, numbered := r.Event.(*session.Steered); b.readers.Load() == 0 && !numbered {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seq++
	r.Seq = b.seq
	for _, s := range b.subs[r.Session] {
		b.offer(s, r)
	}
	if r.Session != "" {
		for _, s := range b.subs[""] {
			b.offer(s, r)
		}
	}
	return r.Seq
}

// offer gives a reader an event that it wants.
func (b *bus) offer(s *subscription, r session.EventRecord) {
	if s.want == nil || b.wanted(s, r) {
		s.push(r)
	}
}

// wanted asks the filter of a reader. The emitter holds locks and may be an actor, so a panic
// ends the reader alone, and is reported on another task.
func (b *bus) wanted(s *subscription, r session.EventRecord) (yes bool) {
	if s.broken {
		return false
	}
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		yes, s.broken = false, true
		s.end()
		err := &session.PanicError{Value: p, Message: "EventsWhere", Stack: debug.Stack()}
		b.exec.Go(func() { b.broke(err) })
	}()
	return s.want(&r)
}

// logTo writes events to a log, on a separate task: the emitter of an event holds locks
// that the log's handler may need.
func (b *bus) logTo(logger func() *slog.Logger, from slog.Level) {
	b.from = from
	b.log = &handler{exec: b.exec, failed: func(error) {}, handle: func(r session.EventRecord) {
		logger().Log(context.Background(), r.Event.Level(), r.Event.String(), "session", r.Session)
	}}
}

func (s *subscription) push(r session.EventRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) >= eventQueue {
		s.queue = s.queue[1:]
	}
	s.queue = append(s.queue, r)
	if _, over := r.Event.(*session.Ended); over && s.session != "" {
		s.closed = true
	}
	s.fire()
}

// end lets the reader finish what it has.
func (s *subscription) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.fire()
}

func (s *subscription) fire() {
	if s.wake != nil {
		close(s.wake)
		s.wake = nil
	}
}

// handler calls one function for each event, in order, on a task that runs only while
// there are events: the emitter holds locks that the function may need.
type handler struct {
	exec   kernel.Executor
	handle func(session.EventRecord)
	failed func(error)

	mu      sync.Mutex
	queue   []session.EventRecord
	lost    int // records that were dropped from the head of queue
	running bool
	idle    chan struct{} // closed when the queue is empty; nil without a waiter
}

// drained is closed when every event so far was handled.
func (h *handler) drained() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.idle == nil {
		h.idle = make(chan struct{})
	}
	idle := h.idle
	if !h.running {
		close(idle)
		h.idle = nil
	}
	return idle
}

func (h *handler) push(r session.EventRecord) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.queue) >= eventQueue {
		h.queue = h.queue[1:]
		h.lost++
	}
	h.queue = append(h.queue, r)
	if !h.running {
		h.running = true
		h.exec.Go(h.run)
	}
}

func (h *handler) run() {
	over := false
	defer func() {
		if !over { // the user's function has ended the goroutine
			h.exec.Go(h.run)
		}
	}()
	for {
		h.mu.Lock()
		if len(h.queue) == 0 {
			over = true
			h.queue, h.running = nil, false
			if h.idle != nil {
				close(h.idle)
				h.idle = nil
			}
			h.mu.Unlock()
			return
		}
		r := h.queue[0]
		if h.lost > 0 {
			r.Event, h.lost = &session.EventsLost{Count: h.lost}, 0
		} else {
			h.queue = h.queue[1:]
		}
		h.mu.Unlock()
		h.call(r)
	}
}

// call guards against a function of the user's that panics.
func (h *handler) call(r session.EventRecord) {
	defer func() {
		if p := recover(); p != nil {
			h.failed(&session.PanicError{Value: p, Message: "OnEvent", Stack: debug.Stack()})
		}
	}()
	h.handle(r)
}

func (b *bus) subscribe(id string, want func(*session.EventRecord) bool) *subscription {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &subscription{session: id, want: want, closed: b.ended}
	if b.subs == nil {
		b.subs = make(map[string][]*subscription)
	}
	b.subs[id] = append(b.subs[id], s)
	b.readers.Store(int32(len(b.subs)))
	return s
}

func (b *bus) drop(s *subscription) {
	b.mu.Lock()
	defer b.mu.Unlock()
	left := slices.DeleteFunc(b.subs[s.session], func(have *subscription) bool { return have == s })
	if len(left) > 0 {
		b.subs[s.session] = left
		return
	}
	delete(b.subs, s.session)
	b.readers.Store(int32(len(b.subs)))
	if len(b.subs) == 0 {
		b.subs = nil // a map never gives memory back
	}
}

// end lets every reader finish what it has.
func (b *bus) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	for _, id := range slices.Sorted(maps.Keys(b.subs)) {
		for _, s := range b.subs[id] {
			s.end()
		}
	}
}

// read yields events until ctx ends, the session does, or the bus. want nil: every event.
func (b *bus) read(ctx context.Context, id string, want func(*session.EventRecord) bool, over func() bool) iter.Seq[session.EventRecord] {
	return func(yield func(session.EventRecord) bool) {
		s := b.subscribe(id, want)
		defer b.drop(s)
		if over() { // its last event may have come before
			s.mu.Lock()
			s.closed = true
			s.mu.Unlock()
		}
		for {
			s.mu.Lock()
			if len(s.queue) > 0 {
				r := s.queue[0]
				s.queue = s.queue[1:]
				s.mu.Unlock()
				if !yield(r) {
					return
				}
				continue
			}
			if s.closed {
				s.mu.Unlock()
				return
			}
			if s.wake == nil {
				s.wake = make(chan struct{})
			}
			wake := s.wake
			s.mu.Unlock()
			if b.exec.Await(ctx, wake) != nil {
				return
			}
		}
	}
}
