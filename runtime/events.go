package runtime

import (
	"context"
	"iter"
	"log/slog"
	"sync"

	"github.com/agent-troupe/troupe/actors/event"
	"github.com/agent-troupe/troupe/internal/kernel"
)

// eventQueue is how many events wait for one reader before the oldest go.
const eventQueue = 1024

// bus hands events to every reader. Publishing never blocks.
type bus struct {
	exec   kernel.Executor
	logger *slog.Logger

	mu   sync.Mutex
	subs []*subscription
}

type subscription struct {
	session string // "" for all
	mu      sync.Mutex
	queue   []event.Record
	lost    int
	wake    chan struct{}
	closed  bool
}

func (b *bus) publish(r event.Record) {
	if b.logger != nil && b.logger.Enabled(context.Background(), r.Event.Level()) {
		b.logger.Log(context.Background(), r.Event.Level(), r.Event.String(), "session", r.Session)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.subs {
		if s.session == "" || s.session == r.Session {
			s.push(r)
		}
	}
}

func (s *subscription) push(r event.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) >= eventQueue {
		s.queue = s.queue[1:]
		s.lost++
	}
	s.queue = append(s.queue, r)
	s.fire()
}

func (s *subscription) fire() {
	if s.wake != nil {
		close(s.wake)
		s.wake = nil
	}
}

// handler calls one function for each event, in order, on a task that runs only
// while there are events: whoever emits holds locks that the function may need.
type handler struct {
	exec   kernel.Executor
	handle func(event.Record)

	mu      sync.Mutex
	queue   []event.Record
	running bool
}

func (h *handler) push(r event.Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.queue) >= eventQueue {
		h.queue = h.queue[1:]
	}
	h.queue = append(h.queue, r)
	if !h.running {
		h.running = true
		h.exec.Go(h.run)
	}
}

func (h *handler) run() {
	for {
		h.mu.Lock()
		if len(h.queue) == 0 {
			h.queue, h.running = nil, false
			h.mu.Unlock()
			return
		}
		r := h.queue[0]
		h.queue = h.queue[1:]
		h.mu.Unlock()
		h.handle(r)
	}
}

func (b *bus) subscribe(session string) *subscription {
	s := &subscription{session: session}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.subs = append(b.subs, s)
	return s
}

func (b *bus) drop(s *subscription) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, have := range b.subs {
		if have == s {
			b.subs = append(b.subs[:i:i], b.subs[i+1:]...)
			return
		}
	}
}

// end lets every reader finish what it has.
func (b *bus) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.subs {
		s.mu.Lock()
		s.closed = true
		s.fire()
		s.mu.Unlock()
	}
}

// read yields events until ctx ends or the bus does.
func (b *bus) read(ctx context.Context, session string) iter.Seq[event.Record] {
	s := b.subscribe(session) // from now on, not from the first pull
	return func(yield func(event.Record) bool) {
		defer b.drop(s)
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
