package kernel

// Idle reports whether nobody runs the actor.
func (a *Address[M]) Idle() bool {
	box := a.Ref().mailbox()
	box.mu.Lock()
	defer box.mu.Unlock()
	return !box.running
}
