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
	// Clock is the clock of every deadline and delay. Default: the wall clock.
	Clock clock.Clock
	// Logger gets the events of all sessions at their own levels, one at a time and in
	// order. If it falls behind by more than 1,024 events, the oldest are dropped and a
	// [session.EventsLost] is logged. Default: the value of slog.Default() at the time of
	// each event, which gets events of level Warn and above. To log nothing, set a logger
	// with slog.DiscardHandler.
	Logger *slog.Logger
	// LineBudget limits the memory for lines above 1 MiB of all sessions together, in
	// bytes. Default: 512 MiB.
	LineBudget int64
	// KeepProcess reports whether a process must not be killed when the process tree of
	// its session is swept, for example a daemon that other programs use. It is called on
	// its own goroutine. Default: nil, every process of the tree is killed.
	KeepProcess func(session.ProcInfo) bool
	// TempDir is the directory for the files that agents need. Default: os.TempDir.
	TempDir string
	// Supervisor decides when the actor that owns a session has crashed; each crash is an
	// error of this library. Every session has a supervisor of its own, so a crash affects
	// no other one, and the strategy gets one child; Options.Supervisors is for the actors
	// below it. If it gives up, the session fails with a *supervisor.Failure. Invalid values
	// are a *[session.ConfigError] of [New]. Zero fields: one_for_one, 3 times in 30 s,
	// 10 ms to 1 s.
	Supervisor supervisor.Policy
}

// Spec describes a session.
type Spec struct {
	// ID is the session's id in this runtime; it must be unique and must not contain / or
	// #. Default: a random id.
	ID string
	// Dialect is the protocol of the agent. Required.
	Dialect dialect.Dialect
	// Options are the session's options. Backend, Runtime, CloseTimeout, OutputRepairs and
	// the file that SystemPrompt names have an effect only in package sdk.
	Options session.Options
	// ParentEnv is the environment to which Options.Env is added. nil: os.Environ.
	ParentEnv []string
	// EnforcesPolicy says that one of Options.Hooks enforces Options.Policy. If it is
	// false, a policy is a *[session.ConfigError], because this package does not enforce
	// policies.
	EnforcesPolicy bool
	// SettingsContent is the content of the file Options.SettingsPath, if it was read.
	SettingsContent []byte
	// Warnings are placed before the dialect's warnings about Options.
	Warnings []session.Warning
	// Program is an agent in this process. nil: Options.Spawner starts the agent; if that
	// is nil, too, the agent is a process of this machine.
	Program agent.Program
}
