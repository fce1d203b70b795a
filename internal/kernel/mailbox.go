package kernel

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// inbox holds the messages of an address. It is unbounded, because bounds are
// kept by credits at the edges, where waiting is possible, and takes no memory
// while it is empty.
//
// To leave a message and to handle one take no lock. Senders push onto a stack, in. The
// goroutine that runs the present incarnation takes the whole stack at once and
// reverses it into head, which only that goroutine uses. An incarnation that finds
// nothing leaves a mark on the stack, and the sender that replaces the mark has to see
// to it that it runs.
//
// The message that is being handled stays at the head until its handler returns
// or commits, so that the next incarnation finds it if this one dies first.
type inbox struct {
	// in is nil, or the message that came last, or a mark: a *life that rests, or closed.
	in    atomic.Pointer[node]
	depth atomic.Int32 // messages that are not handled
	tries atomic.Int32 // incarnations that died of the head

	// Owned by the goroutine that runs the present incarnation, or by the holder of mu
	// if there is no incarnation.
	head  *node
	taken bool // the message being handled is no longer at the head

	roomAt int32 // mu is held to write it and what follows; the pointers are read without it
	mu     sync.Mutex
	sys    *System                       // nil before the first incarnation
	life   atomic.Pointer[life]          // the last incarnation
	room   atomic.Pointer[chan struct{}] // closed when fewer than roomAt messages wait; nil without a waiter
	seen   atomic.Pointer[sighting]      // of the oldest message, by Waited; nil: none
}

// sighting is when a message was first seen to wait. Senders and receivers do not take times.
type sighting struct {
	life    *life
	handled int64 // by life before it
	at      time.Time
}

// waited is for how long the oldest message has been seen to wait.
func (b *inbox) waited(now time.Time) time.Duration {
	if b.depth.Load() == 0 {
		b.seen.Store(nil)
		return 0
	}
	l := b.life.Load()
	is := sighting{life: l, at: now}
	if l != nil {
		is.handled = l.handled.Load()
	}
	if was := b.seen.Load(); was != nil && was.life == is.life && was.handled == is.handled {
		return now.Sub(was.at)
	}
	b.seen.Store(&is)
	return 0
}

// node is a message on its way, or a mark.
type node struct {
	next *node
	m    any
}

// closed is the mark of an inbox that takes no messages.
type closed struct{}

// wake comes like a message and makes an incarnation look for system messages.
type wake struct{}

var errOccupied = errors.New("the address has an actor")

func (l *life) live() bool { return l != nil && !l.gone.Load() }

// occupy makes l the present incarnation.
func (b *inbox) occupy(l *life) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.life.Load().live() {
		return errOccupied
	}
	if b.sys == nil {
		b.sys = l.sys
	}
	if b.closed() {
		b.in.Store(nil)
	}
	b.life.Store(l)
	l.box.Store(b)
	return nil
}

// stop asks it to stop.
func (l *life) stop() { l.PostSystemMessage(&actor.Stop{}) }

// vacate ends an incarnation, and calls those who wait for that. The goroutine that
// runs the incarnation calls it.
func (b *inbox) vacate(l *life) {
	b.mu.Lock()
	l.gone.Store(true)
	var watchers []*func()
	if l.rare != nil {
		watchers = l.rare.watchers
	}
	l.stopping, l.invoker, l.rare = true, nil, nil
	l.signals.Store(0)
	l.box.Store(nil)
	if l.root || b.closed() {
		b.shut()
	}
	b.mu.Unlock()
	for _, fn := range watchers {
		(*fn)()
	}
}

// watch calls fn once the present incarnation is gone: at once without one.
func (b *inbox) watch(fn func()) (unwatch func()) {
	b.mu.Lock()
	l := b.life.Load()
	if !l.live() {
		b.mu.Unlock()
		fn()
		return func() {}
	}
	defer b.mu.Unlock()
	l.aside().watchers = append(l.aside().watchers, &fn)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if l.rare != nil {
			l.rare.watchers = slices.DeleteFunc(l.rare.watchers, func(w *func()) bool { return w == &fn })
			l.shed()
		}
	}
}

// tell queues a message, and schedules the receiver.
func (b *inbox) tell(w *Worker, m any) {
	if m == nil {
		panic("kernel: Tell with a nil message")
	}
	b.depth.Add(1)
	if !b.push(w, m) {
		b.depth.Add(-1)
		b.sys.deadLetters.Add(1)
	}
}

// push reports false if the inbox is closed.
func (b *inbox) push(w *Worker, m any) bool {
	n := &node{m: m}
	b.trace(w, n)
	for {
		last := b.in.Load()
		resting, shut := last.mark()
		if shut {
			return false
		}
		if n.next = last; resting != nil {
			n.next = nil
		}
		if b.in.CompareAndSwap(last, n) {
			if resting != nil {
				resting.schedule(w)
			}
			return true
		}
	}
}

// mark reports the content of n if it is not a message.
func (n *node) mark() (resting *life, shut bool) {
	if n == nil {
		return nil, false
	}
	switch m := n.m.(type) {
	case *life:
		return m, false
	case closed:
		return nil, true
	}
	return nil, false
}

func (b *inbox) closed() bool {
	_, shut := b.in.Load().mark()
	return shut
}

// more reports whether there is a message at the head, after a look for new ones.
func (b *inbox) more() bool {
	if b.head != nil {
		return true
	}
	for {
		last := b.in.Load()
		if _, shut := last.mark(); last == nil || shut {
			return false
		}
		if b.in.CompareAndSwap(last, nil) {
			b.head = inOrder(last)
			return b.head != nil
		}
	}
}

// inOrder turns a stack of messages round.
func inOrder(last *node) (first *node) {
	for last != nil {
		next := last.next
		if _, ok := last.m.(wake); !ok {
			last.next, first = first, last
		}
		last = next
	}
	return first
}

// close drops all messages, which will not be handled.
func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sys != nil {
		b.shut()
	}
}

// shut is close; mu is held. Messages that a live incarnation holds are dropped when it
// is gone.
func (b *inbox) shut() {
	last := b.in.Swap(&node{m: closed{}})
	resting, was := last.mark()
	if resting != nil {
		// A system message may have come for it whose sender finds no mark any more.
		if resting.parked = len(resting.orders()) == 0; !resting.parked {
			resting.schedule(nil)
		}
	}
	var lost []any
	if !b.life.Load().live() {
		lost = b.takeHead(lost)
	}
	if resting == nil && !was {
		for n := inOrder(last); n != nil; n = n.next {
			lost = append(lost, n.m)
		}
	}
	b.sys.deadLetters.Add(int64(len(lost)))
	b.fewer(len(lost))
	b.makeRoom()
}

// takeHead appends what is at the head and after it to all.
func (b *inbox) takeHead(all []any) []any {
	for n := b.head; n != nil; n = n.next {
		all = append(all, n.m)
	}
	b.head, b.taken = nil, true
	b.tries.Store(0)
	return all
}

// take returns every message; mu is held, and no incarnation lives.
func (b *inbox) take() []any {
	all := b.takeHead(nil)
	for b.more() {
		all = b.takeHead(all)
	}
	b.fewer(len(all))
	return all
}

// fewer notes that n messages are gone.
func (b *inbox) fewer(n int) { b.depth.Add(int32(-n)) }

// roomFor returns a channel to wait for until fewer than n messages wait, or nil if
// that is so now.
func (b *inbox) roomFor(n int) <-chan struct{} {
	if b.depth.Load() < int32(n) {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	room := b.room.Load()
	if room == nil {
		c := make(chan struct{})
		room = &c
		b.room.Store(room) // each later removal of a message sees it
	}
	b.roomAt = int32(n)
	b.makeRoom()
	return *room
}

// makeRoom wakes who waits for room if there is; mu is held.
func (b *inbox) makeRoom() {
	room := b.room.Load()
	if room != nil && (b.depth.Load() < b.roomAt || b.closed()) {
		b.room.Store(nil)
		close(*room)
	}
}

// pop drops the head.
func (b *inbox) pop() {
	b.head, b.taken = b.head.next, true
	b.tries.Store(0)
	b.fewer(1)
	if b.room.Load() != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.makeRoom()
	}
}

// commit drops the head before its handler has returned.
func (b *inbox) commit() {
	if !b.taken {
		b.pop()
	}
}

// handled drops the head, unless l died of it.
func (b *inbox) handled(l *life) {
	switch {
	case b.taken:
	case l.reason != nil:
		b.tries.Add(1)
	default:
		b.pop()
	}
}

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
	switch {
	case l.signals.Load() > 0:
		l.invoker.InvokeSystemMessage(l.signal(b))
	case !l.started || l.stopping || b.closed():
		return !l.park(b)
	case b.more():
		b.taken = false
		l.handled.Add(1)
		l.invoker.InvokeUserMessage(b.head.m)
		b.handled(l)
	default:
		return !l.rest(b)
	}
	return true
}

// rest sets the mark that no goroutine runs l, unless a message has come. A system
// message may have come after the last look for one, and its wake been taken since.
func (l *life) rest(b *inbox) bool {
	if l.signals.Load() > 0 {
		return false
	}
	w := l.worker
	l.worker = nil // from the mark on, l is another goroutine's
	if b.in.CompareAndSwap(nil, &l.idle) {
		return true
	}
	l.worker = w
	return false
}

// park is rest for an incarnation that takes no messages.
func (l *life) park(b *inbox) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(l.orders()) > 0 {
		return false
	}
	l.worker, l.parked = nil, true
	return true
}

// signal takes the first system message.
func (l *life) signal(b *inbox) any {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := l.rare.system[0]
	l.rare.system = advance(l.rare.system)
	l.signals.Store(int32(len(l.rare.system)))
	l.shed()
	return m
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
	if l.gone.Load() {
		b.mu.Unlock()
		return
	}
	orders := append(l.orders(), m)
	l.aside().system = orders
	l.signals.Store(int32(len(orders)))
	due := l.parked && l.invoker != nil
	if due {
		l.parked = false
	}
	b.mu.Unlock()
	if due {
		l.schedule(nil)
		return
	}
	b.push(nil, wake{})
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
