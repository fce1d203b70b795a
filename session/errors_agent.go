package session

import (
	"errors"
	"fmt"
	"strings"

	"github.com/agent-troupe/troupe/base/shown"
)

// StartError says that the agent could not be started. The attempt left no process
// and no file behind.
type StartError struct {
	Path     string   // the program that could not be started; may be empty
	Searched []string // directories in which the program was searched
	Dir      string   // working directory
	Argv     []string // arguments, without secrets
	Stderr   string   // the end of the agent's stderr; empty if it did not run
	Err      error    // the cause
}

// explained is a cause whose text names the path, the directories and what to do,
// so that a [StartError] does not repeat them.
type explained interface {
	error
	Explained() string
}

func (e *StartError) Error() string {
	if cause, ok := errors.AsType[explained](e.Err); ok {
		return "start agent: " + cause.Explained()
	}
	var b strings.Builder
	b.WriteString("start agent")
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
	b.WriteString(tails(e.Stderr, ""))
	return b.String()
}

func (e *StartError) Unwrap() error { return e.Err }

// ExitError says that the agent ended unexpectedly. The session has failed.
type ExitError struct {
	Program string     // path or name of the agent's program; "" if unknown, as for an agent in memory
	Status  ExitStatus // how the process ended
	// LadderStep is the last step of Troupe's close ladder, with its reason, if Troupe
	// sent a signal before the agent ended. That signal is then the likely cause of
	// Status. "": Troupe sent no signal; a signal in Status came from the kernel,
	// another process or the agent itself.
	LadderStep string
	During     string // "initialize", "a turn", "idle"
	StderrTail string // the end of the agent's stderr; may be empty
	StdoutTail string // the last line on stdout that was not a message; may be empty
	LastResult string // subtype, terminal reason, API status and text of the last result, if it was an error
}

func (e *ExitError) Error() string {
	var b strings.Builder
	b.WriteString("agent ")
	if e.Program != "" {
		b.WriteString(shown.Visible(e.Program) + " ")
	}
	if e.During == "idle" {
		fmt.Fprintf(&b, "ended while idle: %v", e.Status)
	} else {
		fmt.Fprintf(&b, "ended during %s: %v", e.During, e.Status)
	}
	switch {
	case e.LadderStep != "":
		fmt.Fprintf(&b, " (after Troupe's close ladder: %s)", e.LadderStep)
	case e.Status.Signal != "":
		b.WriteString(" (not sent by Troupe)")
	case e.Status.Code == 128+15: // observed on Claude Code 2.1.329 and qodercli 1.1.52, which handle the signal
		b.WriteString(" (as after a SIGTERM, not sent by Troupe)")
	}
	if e.LastResult != "" {
		fmt.Fprintf(&b, "; last result: %s", shown.Visible(e.LastResult))
	}
	b.WriteString(tails(e.StderrTail, e.StdoutTail))
	return b.String()
}

// Unwrap returns Status.Err.
func (e *ExitError) Unwrap() error { return e.Status.Err }

// ExitStatus is how a process ended.
type ExitStatus struct {
	Code   int    // -1 when a signal ended it
	Signal string // "SIGKILL", …; empty when it exited without one
	// Err is why an agent in this process ended, such as a *[CloudError]; nil for a
	// process, and if the agent did not say. Its type must be comparable.
	Err error
}

func (s ExitStatus) String() string {
	text := fmt.Sprintf("exit code %d", s.Code)
	if s.Signal != "" {
		text = "signal " + s.Signal
	}
	if s.Err != nil {
		text += ": " + shown.Visible(s.Err.Error())
	}
	return text
}

// AuthError says that the agent ended or a run failed, because the agent's login is
// missing or has expired. Log in again, or give other credentials.
type AuthError struct {
	Backend string // "claude", "qoder"
	Err     error  // usually an *[ExitError]
}

func (e *AuthError) Error() string {
	return fmt.Sprintf("%s is not logged in, or its login has expired; log in again or give other credentials: %v", e.Backend, e.Err)
}

func (e *AuthError) Unwrap() error { return e.Err }

// LeftoverError names the processes that an agent left behind and that could not be
// killed. Closing a session returns it.
type LeftoverError struct {
	// Processes are the processes that the sweep found and could not kill. It is empty
	// when the sweep failed, and when a process that the sweep did not find still holds
	// the agent's stdout or stderr.
	Processes []ProcInfo
	Err       error // why the sweep failed, or [ErrStdoutHeld] or [ErrStderrHeld]; may be nil
}

func (e *LeftoverError) Error() string {
	switch {
	case errors.Is(e.Err, ErrStdoutHeld), errors.Is(e.Err, ErrStderrHeld):
		return e.Err.Error()
	case len(e.Processes) == 0:
		return fmt.Sprintf("the agent's process tree could not be swept: %v", e.Err)
	}
	names := make([]string, len(e.Processes))
	for i, p := range e.Processes {
		names[i] = p.String()
	}
	return fmt.Sprintf("%s did not stop: %s", shown.Count(len(names), "process of the agent"), strings.Join(names, ", "))
}

func (e *LeftoverError) Unwrap() error { return e.Err }

// ProcInfo is a process that an agent left behind.
type ProcInfo struct {
	PID     int    // process id on the agent's machine
	Command string // the program, with its arguments if they are known
}

func (p ProcInfo) String() string { return fmt.Sprintf("%d (%s)", p.PID, p.Command) }

// KilledError says that the agent did not end in time and was killed. It left no
// processes behind. The part of its transcript that it had not written yet is lost.
// Closing a session returns it.
type KilledError struct{}

func (*KilledError) Error() string {
	return "the agent did not end in time and was killed; raise Graces, or look at what it was doing"
}

// GatesOffError says that the agent began to answer without calling its hooks, so
// that it would not have called the gates of the session either. Troupe killed the
// agent, and the session has failed.
type GatesOffError struct {
	// Seen is the message that arrived before the first call of a hook: system/init, or
	// assistant.
	Seen string
}

func (e *GatesOffError) Error() string {
	return fmt.Sprintf("the agent calls no hooks, so no gate would be asked (%s came without UserPromptSubmit), and was killed: "+
		"look for CLAUDE_CODE_SIMPLE in its environment and settings files, and for --bare", e.Seen)
}

// EchoError says that the agent's stdin is echoed on its stdout, because a terminal
// is between Troupe and the agent, as with docker run -t or ssh -t. The start fails.
type EchoError struct{}

func (*EchoError) Error() string {
	return "the agent's stdin is echoed on its stdout by a terminal: start the agent without one " +
		"(docker run -i without -t, ssh -T) or switch the echo off (stty -echo -icanon)"
}

// WritesLostError says that the agent's disk was full. A part of its transcript or
// its settings was not written, and a later resume will miss messages. Observed on
// Claude Code 2.1.329 (system/session_writes_lost).
type WritesLostError struct {
	Code string   `json:"error_code"` // ENOSPC, EDQUOT
	Lost []string `json:"lost"`       // transcript, global_config
}

func (e *WritesLostError) Error() string {
	return fmt.Sprintf("the agent could not write (%s): %s lost; free disk space; a resumed session will miss messages", e.Code, strings.Join(e.Lost, ", "))
}

// ProtocolVersionError says that the agent uses another major version of the
// protocol than this library. The start fails; install a release of the agent that
// uses version Major.
type ProtocolVersionError struct {
	Backend string // "claude", "qoder"
	Version string // the agent's version
	Major   string // the major version that this library uses
}

func (e *ProtocolVersionError) Error() string {
	return fmt.Sprintf("%s speaks protocol version %s, this library %s.x: install an agent that fits", e.Backend, e.Version, e.Major)
}

// tails is the end of an error's text that says what an agent wrote last.
func tails(stderr, stdout string) string {
	var b strings.Builder
	for _, tail := range []struct{ name, text string }{{"stderr", stderr}, {"stdout", stdout}} {
		if text := strings.TrimSpace(tail.text); text != "" {
			b.WriteString("; " + tail.name + ": " + shown.Visible(text))
		}
	}
	return b.String()
}
