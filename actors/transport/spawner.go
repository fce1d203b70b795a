package transport

import "github.com/agent-troupe/troupe/session"

// What a spawner and the link share is defined in package session.

// Signal is [session.Signal].
type Signal = session.Signal

// Command is [session.Command].
type Command = session.Command

// File is [session.File].
type File = session.File

// Spawner is [session.Spawner].
type Spawner = session.Spawner

// Process is [session.Process].
type Process = session.Process

// Signals of the close ladder.
const (
	Interrupt = session.SignalInterrupt
	Terminate = session.SignalTerminate
)

// announcer is a [Process] that needs no goroutine to wait for what may never
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

// holder is a [Process] that knows whether anybody still has the other end of an
// output once it has exited. Of one that does not, an output that does not end
// is taken for held: the pump may as well have had no time yet.
type holder interface {
	OutputHeld() (stdout, stderr bool)
}
