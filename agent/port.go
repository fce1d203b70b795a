package agent

import (
	"errors"
	"time"
)

// What a [Port] reports besides lines and io.EOF.
var (
	// ErrWaited says that nothing arrived within the wait.
	ErrWaited = errors.New("agent: nothing arrived in time")
	// ErrTerminated says that SIGTERM arrived.
	ErrTerminated = errors.New("agent: terminated")
	// ErrInterrupted says that SIGINT arrived.
	ErrInterrupted = errors.New("agent: interrupted")
	// ErrKilled says that the agent is dead (SIGKILL in a simulation). The program
	// returns at once and writes nothing more.
	ErrKilled = errors.New("agent: killed")
)

// Port is the agent's end of the pipe. A program calls it from one goroutine
// at a time.
type Port interface {
	// Next returns the next line from the host, without its newline; the slice
	// is the caller's to keep. wait < 0 waits for ever; otherwise Next waits at
	// most wait (0 polls), then returns ErrWaited.
	//
	// It returns io.EOF once when the host has closed the agent's stdin; after
	// that it only waits, and reports signals. ErrTerminated, ErrInterrupted
	// and ErrKilled report a signal.
	Next(wait time.Duration) ([]byte, error)
	// Write writes p to stdout. p is whole lines, newline included, unless the
	// program misbehaves on purpose: a port must take any bytes. It is an error
	// when the host is gone. The port does not keep p.
	Write(p []byte) error
	// Stderr writes diagnostic text.
	Stderr(p []byte)
}

// Elapser is a [Port] that also tells how much time has passed since it was
// made. With it, a delay that is interrupted by a line goes on for what is
// left of it; without it, it starts anew: an agent has no clock of its own.
type Elapser interface {
	Elapsed() time.Duration
}

// Deafener is a [Port] that can stop reading: from Deaf on, what the host
// writes stays in the pipe, and Next only waits and reports signals.
type Deafener interface {
	Deaf()
}

// Launch is how an agent was started.
type Launch struct {
	Args []string // arguments, without the program's own name
	Env  []string // "KEY=value"
	Dir  string   // working directory; "" when unknown
	Seed uint64   // seeds identifiers and everything else that is drawn
	Pid  int      // process id; 0 when the agent is no process
}

// Exit is how an agent ended: with an exit code, or, if Signal is set ("KILL",
// "TERM"), by that signal. The zero value is a clean exit.
type Exit struct {
	Code   int    // 0: success; not used with Signal
	Signal string // without SIG; "": it exited by itself
}

// Program is an agent. Serve serves one conversation, from the first line to
// the end, and returns how the agent ended. It may be called many times, also
// at the same time, each with a port of its own.
type Program interface {
	AgentName() string
	Serve(l Launch, p Port) Exit
}

// Opener is a [Program] that needs no goroutine while it waits for its host:
// whoever opens a conversation plays it whenever there is something for it.
type Opener interface {
	Program
	// Open begins a conversation with the program asked; nil when that is not
	// the receiver but one that embeds it: its Serve is its own.
	Open(asked Program, l Launch, p Port) Player
}

// Player plays one conversation as [Conversation.Play] does.
type Player interface {
	Play() (x Exit, ended bool)
}
