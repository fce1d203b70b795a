package kernel

import "weak"

// Idle reports whether nobody runs the actor.
func (a *Address[M]) Idle() bool {
	box := a.Ref().mailbox()
	box.mu.Lock()
	defer box.mu.Unlock()
	return !box.running
}

// Collected returns a function that reports whether the garbage collector has
// taken what the kernel keeps of the actor.
func (r Ref[M]) Collected() func() bool {
	w := weak.Make(r.life)
	return func() bool { return w.Value() == nil }
}
