package transport

import (
	"errors"
	"fmt"
	"strings"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/osproc"
)

// StartError says that the agent could not be started. Nothing is left of the
// attempt.
type StartError struct {
	Path     string   // what was to be started; may be empty
	Searched []string // directories that were searched
	Dir      string   // working directory
	Argv     []string // without secrets
	Stderr   string   // tail, when the agent ran at all
	Err      error    // what went wrong
}

func (e *StartError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "start agent")
	var own *osproc.StartError
	if errors.As(e.Err, &own) { // it names path, directories and the way out itself
		fmt.Fprintf(&b, ": %s", strings.TrimPrefix(own.Error(), "osproc: "))
		return b.String()
	}
	if e.Path != "" {
		fmt.Fprintf(&b, " %s", e.Path)
	}
	if e.Dir != "" {
		fmt.Fprintf(&b, " in %s", e.Dir)
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	if len(e.Searched) > 0 {
		fmt.Fprintf(&b, " (searched %s)", strings.Join(e.Searched, ":"))
	}
	if e.Stderr != "" {
		b.WriteString(kernel.Tails(e.Stderr, ""))
	}
	return b.String()
}

func (e *StartError) Unwrap() error { return e.Err }

// ExitError says that the agent ended when it should not have.
type ExitError struct {
	Status ExitStatus
	// LadderStep is the last step of Troupe's close ladder, and why it was taken, if
	// a signal of the ladder was sent before the agent ended: then the signal in
	// Status, or the exit code, is most likely its doing. "": Troupe sent none; the
	// signal came from the kernel, another process or the agent itself.
	LadderStep string
	During     string // "initialize", "a turn", "idle"
	StderrTail string
	StdoutTail string // the last line that was no frame
	LastResult string // subtype, terminal reason, API status and text of the last result, if it was an error
}

func (e *ExitError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "agent ended during %s: %v", e.During, e.Status)
	switch {
	case e.LadderStep != "":
		fmt.Fprintf(&b, " (after Troupe's close ladder: %s)", e.LadderStep)
	case e.Status.Signal != "":
		b.WriteString(" (not sent by Troupe)")
	case e.Status.Code == 128+15: // observed on Claude Code 2.1.329 and qodercli 1.1.52, which handle the signal
		b.WriteString(" (as after a SIGTERM, not sent by Troupe)")
	}
	if e.LastResult != "" {
		fmt.Fprintf(&b, "; last result: %s", kernel.Visible(e.LastResult))
	}
	b.WriteString(kernel.Tails(e.StderrTail, e.StdoutTail))
	return b.String()
}

// AuthError says that the agent ended because its login is missing or expired.
type AuthError struct {
	Backend string
	Err     error // usually an *[ExitError]
}

func (e *AuthError) Error() string {
	return fmt.Sprintf("%s is not logged in, or its login has expired; log in again or give other credentials: %v", e.Backend, e.Err)
}

func (e *AuthError) Unwrap() error { return e.Err }

// LeftoverError says what could not be stopped.
type LeftoverError struct {
	// Processes are those that the sweep found; empty when the sweep failed, and
	// when a process that it does not know still holds the agent's stdout or stderr.
	Processes []ProcInfo
	Err       error
}

func (e *LeftoverError) Error() string {
	switch {
	case errors.Is(e.Err, errStdoutHeld), errors.Is(e.Err, errStderrHeld):
		return e.Err.Error()
	case len(e.Processes) == 0:
		return fmt.Sprintf("the agent's process tree could not be swept: %v", e.Err)
	}
	names := make([]string, len(e.Processes))
	for i, p := range e.Processes {
		names[i] = p.String()
	}
	return fmt.Sprintf("%d processes of the agent did not stop: %s", len(names), strings.Join(names, ", "))
}

func (e *LeftoverError) Unwrap() error { return e.Err }
