package actors

import (
	"slices"

	"github.com/agent-troupe/troupe/actors/child"
	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

func (k *Core) newChildren() {
	for _, c := range k.input().Children {
		k.children = append(k.children, child.NewBox(child.Config{
			ID: k.cfg.ID, Child: c, Session: &k.session, Emit: k.cfg.Emit, Context: k.cfg.ChildContext,
		}))
	}
}

// TakeChildren makes the session the one that the user's children are in. The error is a
// *[session.ConfigError], and none is taken then.
func (k *Core) TakeChildren() error {
	for i, c := range k.input().Children {
		detach, ok := c.Attach(k.children[i].Send)
		if !ok {
			k.LeaveChildren()
			return &session.ConfigError{
				Option: "Children[" + c.Spec().Name + "]", Problem: "is in another session",
				Fix: "make one with session.NewChild for each session, or close the other session first",
			}
		}
		k.detach = append(k.detach, detach)
	}
	return nil
}

// LeaveChildren makes the user's children free for another session.
func (k *Core) LeaveChildren() {
	for _, detach := range k.detach {
		detach()
	}
}

// Observe gives the user's children an event.
func (k *Core) Observe(r session.EventRecord) {
	for _, b := range k.children {
		b.Event(r)
	}
}

// ownChild is the user's child of that name; nil: the actor is Troupe's.
func (k *Core) ownChild(name string) *child.Box {
	i := slices.IndexFunc(k.children, func(b *child.Box) bool { return b.Spec().Name == name })
	if i < 0 {
		return nil
	}
	return k.children[i]
}

// specs are the children of the session's supervisor. Callbacks joins them with the first
// request.
func (k *Core) specs() []supervisor.Child {
	all := []supervisor.Child{k.child("transport"), k.child("router")}
	for _, b := range k.children {
		if !b.Gone() {
			all = append(all, b.Spec())
		}
	}
	return all
}

// halt stops an actor after the message that it handles. A child of Options.Children runs
// on other goroutines: it is notified, and is not down before its code has returned. A kill
// of an actor of Troupe's cannot do more than a stop, because it cannot end running code.
// An actor that never returns is stuck, and its supervisor gives up.
func (s *sessionActor) halt(c *kernel.Context[machine.LifeInput], l liveChild, kill bool) {
	own, ok := l.at.(child.Located)
	switch {
	case !ok:
		c.StopChild(l.at)
	case s.stopping != nil:
		own.Box.Halt(c, kill, true, s.stopping.Reason)
	default:
		own.Box.Halt(c, kill, false, session.ErrChildRestarts)
	}
}

// observe reports the decisions of the supervisor. A child that is stopped after Stopping
// is not started again.
func (s *sessionActor) observe(e supervisor.Event) {
	if stopping, ok := e.(*supervisor.Stopping); ok {
		s.stopping = stopping
	}
	observe(s.core.cfg.Emit)(e)
}
