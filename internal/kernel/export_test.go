package kernel

import "weak"

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
