package runtime

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/actors/user"
	"github.com/agent-troupe/troupe/protocol"
)

// watchQueue is how many messages wait for one loop over [Session.Watch].
const watchQueue = 1024

// Seen is a message that [Session.Watch] yields.
type Seen struct {
	At      time.Time        // when it was read from the agent, or sent to it, by the runtime's clock
	Raw     []byte           // the line of JSON; do not change it
	Message protocol.Message // the line, decoded
	Lost    int              // messages before it that were dropped, because the loop is slow
}

// Watch yields the messages of the session from the call on, those that are sent to the agent
// too, until ctx or the session ends. It takes nothing from [Session.Messages] and never
// delays the session: a loop that falls behind by more than 1,024 messages loses the oldest.
// There may be several calls, each for one loop; without its loop a call keeps up to 1,024
// messages until ctx or the session ends. Messages have the whole content of the conversation.
func (s *Session) Watch(ctx context.Context) iter.Seq[Seen] {
	w := &watch{now: s.rt.sys.Clock().Now}
	ctx, cancel := context.WithCancel(ctx)
	untap := s.core.User.Tap(w.see)
	s.rt.sys.Executor().Go(func() {
		if s.rt.sys.Executor().Await(ctx, s.Done()) == nil {
			w.end()
		}
		untap()
	})
	return func(yield func(Seen) bool) {
		defer cancel()
		for {
			one, wake, over := w.next()
			switch {
			case wake == nil && over:
				return
			case wake == nil:
				if !yield(Seen{one.at, one.Frame.Raw, decode(&user.Delivery{Delivery: one.Delivery}), one.lost}) {
					return
				}
			case s.rt.sys.Executor().Await(ctx, wake) != nil:
				return
			}
		}
	}
}

// watch is what waits for one loop.
type watch struct {
	now func() time.Time

	mu    sync.Mutex
	queue []seen
	lost  int
	wake  chan struct{} // not nil while the loop waits
	over  bool
}

type seen struct {
	machine.Delivery
	at   time.Time
	lost int
}

// see takes messages, under the lock of the session's user side.
func (w *watch) see(all []machine.Delivery) {
	at := w.now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range all {
		if len(w.queue) >= watchQueue {
			w.queue = w.queue[1:]
			w.lost++
		}
		w.queue = append(w.queue, seen{Delivery: all[i], at: at})
	}
	w.fire()
}

func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.fire()
}

// fire wakes the loop; mu is held.
func (w *watch) fire() {
	if w.wake != nil {
		close(w.wake)
		w.wake = nil
	}
}

// next takes the next message. Without one it returns what to wait for, or that it is over.
func (w *watch) next() (one seen, wake <-chan struct{}, over bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) > 0 {
		one, w.queue = w.queue[0], w.queue[1:]
		one.lost, w.lost = w.lost, 0
		return one, nil, false
	}
	if w.over {
		return seen{}, nil, true
	}
	if w.wake == nil {
		w.wake = make(chan struct{})
	}
	return seen{}, w.wake, false
}
