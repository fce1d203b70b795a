package transport

import (
	"errors"
	"fmt"
	"strings"

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
		fmt.Fprintf(&b, "; stderr: %s", e.Stderr)
	}
	return b.String()
}

func (e *StartError) Unwrap() error { return e.Err }

// ExitError says that the agent ended when it should not have.
type ExitError struct {
	Status     ExitStatus
	During     string // "initialize", "a turn", "idle"
	StderrTail string
	StdoutTail string // the last line that was no frame
	LastResult string // subtype, terminal reason, API status and text of the last result, if it was an error
}

func (e *ExitError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "agent ended during %s: %v", e.During, e.Status)
	if e.LastResult != "" {
		fmt.Fprintf(&b, "; last result: %s", e.LastResult)
	}
	if e.StderrTail != "" {
		fmt.Fprintf(&b, "; stderr: %s", strings.TrimSpace(e.StderrTail))
	}
	if e.StdoutTail != "" {
		fmt.Fprintf(&b, "; stdout: %s", strings.TrimSpace(e.StdoutTail))
	}
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
	Processes []ProcInfo
	Err       error
}

func (e *LeftoverError) Error() string {
	if len(e.Processes) == 0 {
		return fmt.Sprintf("the agent's process tree could not be swept: %v", e.Err)
	}
	names := make([]string, len(e.Processes))
	for i, p := range e.Processes {
		names[i] = p.String()
	}
	return fmt.Sprintf("%d processes of the agent did not stop: %s", len(names), strings.Join(names, ", "))
}

func (e *LeftoverError) Unwrap() error { return e.Err }
