package kernel

// Outbox holds what a step of a state machine has asked for until it is carried out.
// It belongs to what outlives the actor, as the machine does, so that each effect is
// carried out once, whichever incarnation does it. One goroutine at a time uses it.
type Outbox[E any] struct {
	effects  []E
	next     int
	stepping bool
}

// maxKept is for how many effects an outbox keeps room.
const maxKept = 16

// Step makes a step, which appends its effects to out. If it panics the machine is
// half-way between two states, and the outbox is [Outbox.Broken] from then on.
func (o *Outbox[E]) Step(step func(out []E) []E) {
	o.stepping = true
	o.effects = step(o.effects)
	o.stepping = false
}

// Broken reports whether a step has panicked: then its machine is not to be trusted.
func (o *Outbox[E]) Broken() bool { return o.stepping }

// Empty reports whether everything was carried out.
func (o *Outbox[E]) Empty() bool { return o.next == len(o.effects) }

// Flush carries out the remaining effects, in order. An effect leaves the outbox once
// do has returned; effects that do adds by a step come last. struck, if not nil, is
// called after each: tests kill the actor there.
func (o *Outbox[E]) Flush(do func(E), struck func(effect any)) {
	var none E
	for o.next < len(o.effects) {
		e := o.effects[o.next]
		do(e)
		o.effects[o.next] = none
		o.next++
		if struck != nil {
			struck(e)
		}
	}
	if o.effects, o.next = o.effects[:0], 0; cap(o.effects) > maxKept {
		o.effects = nil
	}
}

// StepOn is Step inside an actor. in is the input, for tests that kill the actor there.
func StepOn[E, M any](c *Context[M], o *Outbox[E], in any, step func(out []E) []E) {
	chaos := c.sys.cfg.Chaos
	if chaos == nil {
		o.Step(step)
		return
	}
	o.Step(func(out []E) []E {
		out = step(out)
		chaos.strike(c.adapter.life.name, in, InStep)
		return out
	})
}

// FlushOn is Flush inside an actor.
func FlushOn[E, M any](c *Context[M], o *Outbox[E], do func(E)) {
	if c.sys.cfg.Chaos == nil {
		o.Flush(do, nil)
		return
	}
	o.Flush(do, c.struck)
}
