package transport

// announcer is a [session.Process] that needs no goroutine to wait for what may never
// come. Each method but the last is called once; fn runs as a task.
type announcer interface {
	// AfterExit has fn run once Exited is closed.
	AfterExit(fn func())
	// OnStderr has fn run when Stderr can be read from, has ended or is closed.
	OnStderr(fn func())
	// OnStdout is OnStderr for Stdout, for any number of times, one after the
	// other. It reports false when there is nothing to wait for, or nothing can
	// tell; then fn is not run.
	OnStdout(fn func()) bool
}

// holder is a [session.Process] that knows whether anybody still has the other end of an
// output once it has exited. Of one that does not, an output that does not end
// is taken for held: the pump may as well have had no time yet.
type holder interface {
	OutputHeld() (stdout, stderr bool)
}
