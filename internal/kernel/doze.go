package kernel

// bell is the mark of an inbox that waits, without an incarnation, for its next message:
// the sender that replaces the mark calls it.
type bell func(w *Worker)

// bell is what n rings if it is such a mark; nil: it is none.
func (n *node) bell() bell {
	if n == nil {
		return nil
	}
	ring, _ := n.m.(bell)
	return ring
}

// silence takes the bell away; mu is held.
func (b *inbox) silence() {
	if last := b.in.Load(); last.bell() != nil {
		b.in.CompareAndSwap(last, nil) // or a message has just rung it
	}
}

// doze leaves a bell, and forgets the last incarnation. It reports false if there is an
// incarnation or a message.
func (b *inbox) doze(ring bell) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.life.Load().live() || b.closed() {
		return false
	}
	b.silence()
	if b.more() || !b.in.CompareAndSwap(nil, &node{m: ring}) {
		return false
	}
	b.life.Store(nil)
	b.tries.Store(0)
	return true
}
