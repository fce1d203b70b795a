package session

import (
	"context"
	"io"
	"slices"
)

// Signal is a signal that a [Process] passes on to its agent.
type Signal int

// Signals. SignalInterrupt is SIGINT, SignalTerminate is SIGTERM.
const (
	SignalInterrupt Signal = iota
	SignalTerminate
)

func (s Signal) String() string {
	if s == SignalInterrupt {
		return "SIGINT"
	}
	return "SIGTERM"
}

// Command says what to start.
type Command struct {
	Path        string   // executable; empty: look Names up in the PATH of Env
	Names       []string // names to look up, best first
	Interpreter []string // runs Path, e.g. node
	Args        []string // arguments of the agent, without the program
	Env         []string // the whole environment, "KEY=value"
	Dir         string   // working directory; empty: the caller's
	Files       []File   // written before the start; {{file:NAME}} in Args and Env is their path
	// TermOnHostDeath: on Linux the process gets SIGTERM when this program
	// dies, however it does; false: SIGKILL.
	TermOnHostDeath bool
	Seed            uint64 // seeds an in-memory agent; others ignore it
}

// Argv is the command line of the agent for a shell, a container or another machine:
// the Interpreter, the Path or, without one, the first of Names, and the Args. The
// placeholders of Files are still in it.
func (c *Command) Argv() []string {
	program := c.Path
	if program == "" && len(c.Names) > 0 {
		program = c.Names[0]
	}
	return slices.Concat(c.Interpreter, []string{program}, c.Args)
}

// Placeholder stands for the file's path in the Args and the Env of its [Command].
func (f *File) Placeholder() string { return "{{file:" + f.Name + "}}" }

// File is a file for the agent, mode 0600, removed when the agent is gone.
type File struct {
	Name    string // base name, unique within one Command
	Content []byte // may hold secrets
}

// Spawner starts agents. Implementations are safe for concurrent use. To start them by
// another command of this machine, such as docker run, ssh or setpriv, use
// sdk.SpawnThrough.
type Spawner interface {
	// Spawn starts the process. It may block; ctx ends the attempt, never the
	// process. Failures are *[StartError].
	Spawn(ctx context.Context, c Command) (Process, error)
}

// Process is a running agent. Whoever implements it has the duty of the whole
// process tree: Kill and Sweep leave nothing behind.
type Process interface {
	PID() int // 0 when there is no such thing
	Stdin() io.WriteCloser
	Stdout() io.Reader
	Stderr() io.Reader // nil when there is none
	// Exited is closed when the process itself has ended; children may live
	// and output may be unread.
	Exited() <-chan struct{}
	// Signal tells the process group. After the end it does nothing.
	Signal(s Signal) error
	// Kill ends the process group at once.
	Kill() error
	// Sweep ends every process that the agent left behind and returns those
	// it could not. It may block until ctx ends.
	Sweep(ctx context.Context) ([]ProcInfo, error)
	// CloseOutput makes pending and later reads of stdout and stderr end.
	CloseOutput()
	// Reap releases what the process held and tells how it ended. It is
	// called once, last, after Exited.
	Reap() (ExitStatus, error)
}
