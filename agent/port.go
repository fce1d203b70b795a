package agent

import (
	"errors"
	"time"
)

// Errors of a [Port], in addition to io.EOF.
var (
	// ErrWaited says that nothing arrived within the wait.
	ErrWaited = errors.New("agent: nothing arrived in time")
	// ErrTerminated says that SIGTERM arrived.
	ErrTerminated = errors.New("agent: terminated")
	// ErrInterrupted says that SIGINT arrived.
	ErrInterrupted = errors.New("agent: interrupted")
	// ErrKilled says that the agent was killed (SIGKILL in a simulation). The program must
	// return at once and write nothing more.
	ErrKilled = errors.New("agent: killed")
)

// Port is the agent's end of the pipe. A program calls it from one goroutine
// at a time.
type Port interface {
	// Next returns the next line from the host, without its newline. The caller may keep
	// the slice. Next waits at most wait, and then returns ErrWaited; 0 polls. If wait is
	// negative, there is no limit.
	//
	// When the host has closed the agent's stdin, Next returns io.EOF once. After that it
	// only waits and reports signals: ErrTerminated, ErrInterrupted and ErrKilled.
	Next(wait time.Duration) ([]byte, error)
	// Write writes p to stdout. p has whole lines, including their newlines, unless the
	// program misbehaves on purpose; a port must accept any bytes. Write returns an error
	// if the host is gone. It does not retain p.
	Write(p []byte) error
	// Stderr writes diagnostic text.
	Stderr(p []byte)
}

// Elapser is a [Port] that also returns the time since it was made. An agent has no
// clock. With an Elapser, a delay that a line interrupts continues for the remaining
// time; without an Elapser it starts again.
type Elapser interface {
	Elapsed() time.Duration
}

// Deafener is a [Port] that can stop reading. After Deaf the lines that the host writes
// stay in the pipe, and Next only waits and reports signals.
type Deafener interface {
	Deaf()
}

// Signaller is a [Port] that can get a signal: Next returns err, which is
// ErrTerminated, ErrInterrupted or ErrKilled, before any line. A program with its own
// tasks wakes its Next with another error. Signal may be called from any goroutine.
type Signaller interface {
	Signal(err error)
}

// Launch is how an agent was started.
type Launch struct {
	Args []string // arguments, without the name of the program
	Env  []string // "KEY=value"
	Dir  string   // working directory; "" if unknown
	Seed uint64   // seed of identifiers and of all other random values
	Pid  int      // process id; 0 if the agent is not a process
}

// Exit is how an agent ended: with an exit code, or, if Signal is set ("KILL",
// "TERM"), by that signal. The zero value is a clean exit.
type Exit struct {
	Code   int    // 0: success; not used with Signal
	Signal string // without SIG; "": no signal ended it
	// Err is why an agent in the host's process ended, for the session's error. A
	// process has no such error. nil: no reason.
	Err error
}

// Program is an agent. Serve serves one conversation, from its first line to its end,
// and returns how the agent ended. It may be called many times, also concurrently, each
// time with another port.
type Program interface {
	AgentName() string
	Serve(l Launch, p Port) Exit
}

// Opener is a [Program] that needs no goroutine while it waits for its host. The host
// side opens a conversation, and plays it when the agent has something to do.
type Opener interface {
	Program
	// Open opens a conversation with the program asked. It returns nil if asked is not
	// the receiver but a type that embeds it, because that type may have another Serve.
	Open(asked Program, l Launch, p Port) Player
}

// Player plays one conversation like [Conversation.Play].
type Player interface {
	Play() (x Exit, ended bool)
}
