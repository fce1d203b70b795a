package kernel

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// inbox holds the messages of an address. It is unbounded, because bounds are
// kept by credits at the edges, where waiting is possible, and takes no memory
// while it is empty.
//
// The message that is being handled stays at the head until its handler returns
// or commits, so that the next incarnation finds it if this one dies first.
type inbox struct {
	mu     sync.Mutex
	sys    *System // nil before the first incarnation
	user   []any
	life   *life // the last incarnation
	tries  int   // incarnations that died of the head
	taken  bool  // the message being handled is no longer at the head
	closed bool

	depth  atomic.Int32  // of user
	room   chan struct{} // closed when fewer than roomAt messages wait; nil: nobody asks
	roomAt int
}

// life is one incarnation of an actor, and the mailbox that the actor library
// knows: it holds system messages, which are for this incarnation alone. The
// library keeps it for long after its end, so it then refers to nothing.
type life struct {
	name string
	root bool // it has no parent, and so no successor
	sys  *System
	box  atomic.Pointer[inbox] // nil once it is gone

	reason error // written before the parent is told, read after

	// Guarded by box.mu.
	invoker  actor.MessageInvoker
	system   []any
	handled  int64
	started  bool      // it takes messages
	stopping bool      // it takes none any more
	gone     bool      // it has stopped
	running  bool      // a goroutine runs it, or is about to
	watchers []*func() // called when it is gone

	worker *Worker // whose goroutine runs it
}

var errOccupied = errors.New("the address has an actor")

func (l *life) live() bool { return l != nil && !l.gone }

// occupy makes l the present incarnation.
func (b *inbox) occupy(l *life) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.life.live() {
		return errOccupied
	}
	b.sys, b.life, b.closed = l.sys, l, false
	l.box.Store(b)
	return nil
}

// begin opens the present incarnation to messages.
func (b *inbox) begin(l *life) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l.started = true
}

// end closes it to messages: it is about to stop.
func (b *inbox) end(l *life) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l.stopping = true
}

// stop asks it to stop.
func (l *life) stop() { l.PostSystemMessage(&actor.Stop{}) }

// vacate ends an incarnation, and calls those who wait for that.
func (b *inbox) vacate(l *life) {
	b.mu.Lock()
	l.gone, l.stopping, l.invoker, l.system = true, true, nil, nil
	l.box.Store(nil)
	watchers := l.watchers
	l.watchers = nil
	if l.root {
		b.shut()
	}
	b.mu.Unlock()
	for _, fn := range watchers {
		(*fn)()
	}
}

// watch calls fn once the present incarnation is gone: at once if there is none.
func (b *inbox) watch(fn func()) (unwatch func()) {
	b.mu.Lock()
	l := b.life
	if !l.live() {
		b.mu.Unlock()
		fn()
		return func() {}
	}
	defer b.mu.Unlock()
	l.watchers = append(l.watchers, &fn)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		l.watchers = slices.DeleteFunc(l.watchers, func(w *func()) bool { return w == &fn })
	}
}

// tell leaves a message, and sees to it that somebody runs the receiver.
func (b *inbox) tell(w *Worker, m any) {
	if m == nil {
		panic("kernel: Tell with a nil message")
	}
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		b.sys.deadLetters.Add(1)
		return
	}
	b.user = append(b.user, m)
	b.depth.Store(int32(len(b.user)))
	l := b.life
	due := l != nil && l.due(b)
	b.mu.Unlock()
	if due {
		l.schedule(w)
	}
}

// close drops what nobody will handle.
func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sys != nil && !b.closed {
		b.shut()
	}
}

// shut is close; mu is held.
func (b *inbox) shut() {
	b.closed = true
	b.sys.deadLetters.Add(int64(len(b.user)))
	b.user, b.tries, b.taken = nil, 0, true
	b.makeRoom()
}

// makeRoom notes that messages are gone; mu is held.
func (b *inbox) makeRoom() {
	b.depth.Store(int32(len(b.user)))
	if b.room != nil && (len(b.user) < b.roomAt || b.closed) {
		close(b.room)
		b.room = nil
	}
}

// pop drops the head; mu is held. An empty queue gives up what it needed at its
// longest.
func (b *inbox) pop() {
	b.user = advance(b.user)
	b.taken, b.tries = true, 0
	b.makeRoom()
}

// commit drops the head before its handler has returned.
func (b *inbox) commit() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.taken {
		b.pop()
	}
}

// handled drops the head, unless l died of it.
func (b *inbox) handled(l *life) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.taken:
	case l.reason != nil:
		b.tries++
	default:
		b.pop()
	}
}

// due claims an incarnation that has something to do for the caller, who then
// has to schedule it; b.mu is held.
func (l *life) due(b *inbox) bool {
	if l.running || l.invoker == nil || len(l.system) == 0 && !l.open(b) {
		return false
	}
	l.running = true
	return true
}

// open reports whether there is a message to handle; b.mu is held.
func (l *life) open(b *inbox) bool { return l.started && !l.stopping && len(b.user) > 0 }

// schedule is where it is decided who runs an actor.
func (l *life) schedule(w *Worker) {
	if w != nil && l.sys.cfg.Dispatcher.Inline(false) {
		w.actors = append(w.actors, l)
		return
	}
	l.sys.cfg.Dispatcher.Go(l.work)
}

func (l *life) work() {
	w := &Worker{sys: l.sys, actors: []*life{l}}
	w.Run()
}

// run handles a batch of messages and reports whether there may be more, which
// the caller has to schedule then.
func (l *life) run(w *Worker) (more bool) {
	b := l.box.Load()
	if b == nil {
		return false // it is gone
	}
	l.worker = w
	for range l.sys.cfg.Dispatcher.Batch() {
		if !l.step(b) {
			return false
		}
	}
	l.worker = nil
	return true
}

// step handles one message and reports whether it may be called again.
func (l *life) step(b *inbox) bool {
	b.mu.Lock()
	switch {
	case len(l.system) > 0:
		m, invoker := l.system[0], l.invoker
		l.system = advance(l.system)
		b.mu.Unlock()
		invoker.InvokeSystemMessage(m)
	case l.open(b):
		m, invoker := b.user[0], l.invoker
		b.taken = false
		l.handled++
		b.mu.Unlock()
		invoker.InvokeUserMessage(m)
		b.handled(l)
	default:
		l.worker, l.running = nil, false
		b.mu.Unlock()
		return false
	}
	return true
}

// PostUserMessage implements [actor.Mailbox]. Messages come by way of the
// address alone.
func (l *life) PostUserMessage(any) {}

// PostSystemMessage implements [actor.Mailbox].
func (l *life) PostSystemMessage(m any) {
	b := l.box.Load()
	if b == nil {
		return
	}
	b.mu.Lock()
	if l.gone {
		b.mu.Unlock()
		return
	}
	l.system = append(l.system, m)
	due := l.due(b)
	b.mu.Unlock()
	if due {
		l.schedule(nil)
	}
}

// RegisterHandlers implements [actor.Mailbox].
func (l *life) RegisterHandlers(i actor.MessageInvoker, _ actor.Dispatcher) {
	b := l.box.Load()
	b.mu.Lock()
	defer b.mu.Unlock()
	l.invoker = i
}

// Start implements [actor.Mailbox].
func (l *life) Start() {}

// UserMessageCount implements [actor.Mailbox].
func (l *life) UserMessageCount() int { return 0 }

// advance drops the first message.
func advance(q []any) []any {
	q[0] = nil
	if q = q[1:]; len(q) > 0 {
		return q
	}
	return nil
}
