package kernel

import "weak"

// Registered is the number of entries of the actor library's registry.
func (s *System) Registered() (n int) {
	for _, m := range s.sys.ProcessRegistry.LocalPIDs.LocalPIDs {
		n += m.Count()
	}
	return n
}

// Adopted is the number of children that the actor library knows of.
func (c *Context[M]) Adopted() int { return len(c.actor.Children()) }

// Idle reports whether the present incarnation has started and nobody runs it.
func (a *Address[M]) Idle() bool {
	l, _ := a.box.in.Load().mark()
	return l != nil
}

// Collected returns a function that reports whether the garbage collector has
// taken what the kernel keeps of the actor.
func (a *Address[M]) Collected() func() bool {
	w := weak.Make(a.present())
	return func() bool { return w.Value() == nil }
}
