package session

import (
	"context"
	"io"
	"slices"
	"time"
)

// Signal is a signal that a [Process] sends to its agent.
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

// Command describes the process to start.
type Command struct {
	Path        string   // executable; empty: look Names up in the PATH of Env
	Names       []string // names to look up, best first
	Interpreter []string // program that runs Path, with its arguments, such as node; empty: Path itself runs
	Args        []string // arguments of the agent, without the program
	Env         []string // the whole environment, "KEY=value"
	Dir         string   // working directory; empty: the caller's
	Files       []File   // files to write before the start; replace {{file:NAME}} in Args and Env by their paths
	// TermOnHostDeath says which signal the process gets on Linux when this program
	// dies in any way: true means SIGTERM, false SIGKILL.
	TermOnHostDeath bool
	Seed            uint64 // seed of the randomness of an in-memory agent; processes ignore it
}

// Argv returns the command line of the agent, for a shell, a container or another
// machine: Interpreter, then Path (or the first of Names if Path is empty), then
// Args. The placeholders of Files are not replaced.
func (c *Command) Argv() []string {
	program := c.Path
	if program == "" && len(c.Names) > 0 {
		program = c.Names[0]
	}
	return slices.Concat(c.Interpreter, []string{program}, c.Args)
}

// Placeholder returns the text that Args and Env of the [Command] have in place of
// the file's path.
func (f *File) Placeholder() string { return "{{file:" + f.Name + "}}" }

// File is a file for the agent. It is written with mode 0600 and removed when the
// agent has ended.
type File struct {
	Name    string // base name, unique within one Command
	Content []byte // may hold secrets
}

// Spawner starts agents. Implementations must be safe for concurrent use. To start
// agents with another command of this machine, such as docker run, ssh or setpriv, use
// sdk.SpawnThrough instead of your own implementation.
type Spawner interface {
	// Spawn starts the process. It may block. The end of ctx ends the attempt, never
	// a process that was started. Return a *[StartError] on failure.
	Spawn(ctx context.Context, c Command) (Process, error)
}

// Adopter is a [Spawner] whose agents may outlive this program, such as one that starts
// them in containers or on another machine. A job that is resumed (package fleet) asks it
// for what the earlier program has left.
type Adopter interface {
	Spawner
	// Adopt returns the processes that an earlier program has started and that may still run:
	// those whose Command.Env had the variable with the name marker. The caller is responsible for
	// them from then on, as for those that Spawn returns. It may block.
	Adopt(ctx context.Context, marker string) ([]Process, error)
}

// Process is a running agent. An implementation is responsible for the whole process
// tree: after Kill and Sweep no process of it may be left. PID, Exited and the pipes are asked
// for once. A method that panics, or ends its goroutine, has failed, and the host lives: the start
// fails or the session ends with an error that says which method it was, a [PanicError] for a panic.
// If the process has ended already, that is in the [LeftoverError] of the session.
type Process interface {
	PID() int // process id; 0 without a process
	Stdin() io.WriteCloser
	Stdout() io.Reader
	Stderr() io.Reader // nil if the agent has no stderr
	// Exited returns a channel that is closed when the process itself has ended. Its
	// children may still run then, and output may be unread.
	Exited() <-chan struct{}
	// Signal sends s to the process group. After the process has ended it does nothing.
	Signal(s Signal) error
	// Kill kills the process group at once.
	Kill() error
	// Sweep kills every process that the agent left behind and returns those that it
	// could not kill. It may block until ctx ends.
	Sweep(ctx context.Context) ([]ProcInfo, error)
	// CloseOutput ends pending and later reads of stdout and stderr.
	CloseOutput()
	// Reap releases the resources of the process and returns how it ended. It is
	// called once, after Exited, as the last method.
	Reap() (ExitStatus, error)
}

// The seams are the interfaces whose implementations differ between production and
// simulation. A runtime has one of each. All waiting, all concurrency and all
// randomness goes through them.

// Timer is a pending call made by [Clock].
type Timer interface {
	// Stop cancels the call. It reports false when the call already ran, is
	// running, or was stopped before.
	Stop() bool
}

// Clock returns the time and makes timers. It is safe for concurrent use.
type Clock interface {
	Now() time.Time
	// AfterFunc calls fn once, after d, on a goroutine of the clock. fn must be short:
	// it may send a message or end a wait, nothing else.
	AfterFunc(d time.Duration, fn func()) Timer
}

// Executor runs everything that may block: user callbacks, pumps, and waits.
type Executor interface {
	// Go runs fn as a new task, never on the calling goroutine.
	Go(fn func())
	// Await blocks the calling task until done is closed or ctx ends. It returns nil if
	// done is closed, otherwise context.Cause(ctx). A task must not wait for another
	// task in any other way.
	Await(ctx context.Context, done <-chan struct{}) error
}

// Rand is the source of jitter, identifiers and temporary names. It is safe for
// concurrent use.
type Rand interface {
	Uint64() uint64
	// Int64N returns a number in [0, n); it panics when n <= 0.
	Int64N(n int64) int64
}
