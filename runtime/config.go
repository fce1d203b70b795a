package runtime

import (
	"log/slog"

	"github.com/benbjohnson/clock"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// Config configures a [Runtime]. The zero value works.
type Config struct {
	// Clock drives every deadline and delay. Default: the wall clock.
	Clock clock.Clock
	// Logger receives the events of all sessions at their own levels, one at a
	// time and in order; when it falls behind by more than 1,024 the oldest are
	// lost, with an EventsLost. Default: slog.Default(), as it is at each event, which
	// gets the events of level Warn and above. Set a logger with
	// slog.DiscardHandler to log nothing.
	Logger *slog.Logger
	// LineBudget bounds the memory that lines above 1 MiB take in all
	// sessions together, in bytes. Default: 512 MiB.
	LineBudget int64
	// KeepProcess spares a process that would be swept with its session, such
	// as a daemon that the user shares. Default: none is spared. It is called
	// on a task of the runtime.
	KeepProcess func(session.ProcInfo) bool
	// TempDir holds the files that agents are given. Default: os.TempDir.
	TempDir string
	// SessionIntensity bounds how often the actor of one session may crash,
	// which is a bug of this library. Default: 3 times in 30 s.
	SessionIntensity supervisor.Intensity
	// SessionBackoff delays its restarts. Default: 10 ms to 1 s.
	SessionBackoff supervisor.Backoff
}

// Spec describes a session.
type Spec struct {
	// ID names the session in this runtime. Default: drawn at random.
	ID string
	// Dialect is how the agent speaks. Required.
	Dialect dialect.Dialect
	// Options are those of the session. Of these package sdk alone reads Backend, Runtime,
	// CloseTimeout and OutputRepairs, and reads the file that SystemPrompt names.
	Options session.Options
	// ParentEnv is the environment that Options.Env is merged over. nil: os.Environ.
	ParentEnv []string
	// EnforcesPolicy says that one of Options.Hooks enforces Options.Policy. Without it a policy
	// is an error, because this package does not enforce any.
	EnforcesPolicy bool
	// SettingsContent is what is in the file Options.SettingsPath, if it was read.
	SettingsContent []byte
	// Warnings come before those that the dialect has about Options.
	Warnings []session.Warning
	// Program is an agent in this process. nil: Options.Spawner starts the agent, or
	// without one it is a process of this machine.
	Program agent.Program

	// ActorIntensity bounds how often the session's actors may crash before
	// the session fails. Default: 3 times in 30 s.
	ActorIntensity supervisor.Intensity
	// ActorBackoff delays their restarts. Default: 10 ms to 1 s.
	ActorBackoff supervisor.Backoff
}
