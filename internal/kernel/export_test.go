package kernel

import "weak"

// Idle reports whether nobody runs the actor.
func (a *Address[M]) Idle() bool {
	a.box.mu.Lock()
	defer a.box.mu.Unlock()
	return a.box.life.started && !a.box.life.running
}

// Collected returns a function that reports whether the garbage collector has
// taken what the kernel keeps of the actor.
func (a *Address[M]) Collected() func() bool {
	w := weak.Make(a.present())
	return func() bool { return w.Value() == nil }
}
