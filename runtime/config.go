package runtime

import (
	"log/slog"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/agent-troupe/troupe/actors/hooks"
	"github.com/agent-troupe/troupe/actors/inquiry"
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

// Names of lower layers that appear in a [Spec].
type (
	// Hook is a hook callback.
	Hook = hooks.Hook
	// Inquiries answer what the agent asks besides.
	Inquiries = inquiry.Callbacks
	// MCPServer is an in-process MCP server.
	MCPServer = session.MCPHandler
	// Spawner starts agents somewhere else than on this machine.
	Spawner = session.Spawner
)

// Spec describes a session.
type Spec struct {
	// ID names the session in this runtime. Default: drawn at random.
	ID string
	// Dialect is how the agent speaks. Required.
	Dialect dialect.Dialect
	// Options say what to launch. The callbacks and servers in it are replaced by
	// those of the fields below.
	Options session.Options
	// ParentEnv is the environment that Options.Env is merged over. nil: os.Environ.
	ParentEnv []string
	// EnforcesPolicy says that one of Hooks enforces Options.Policy. Without it a policy
	// is an error, because this package does not enforce any.
	EnforcesPolicy bool
	// SettingsContent is what is in the file Options.SettingsPath, if it was read.
	SettingsContent []byte
	// Warnings come before those that the dialect has about Options.
	Warnings []session.Warning
	// Program is an agent in this process; Spawner starts it elsewhere. With
	// neither it is a process of this machine.
	Program agent.Program
	Spawner Spawner // nil: see Program

	Hooks      []Hook             // nil: none
	CanUseTool session.CanUseTool // nil: the agent is told that nobody decides
	// PermissionTimeout denies a permission request that nobody decides.
	// Default: none, a person may be asleep.
	PermissionTimeout time.Duration
	MCPServers        []MCPServer // those that live in this process
	// MCPServerConfigs are limits and tool policies of MCPServers, by name. A
	// limit is that of the server's tools that have none of their own.
	MCPServerConfigs map[string]session.SDKMCPServerConfig
	ResolveModel     session.ResolveModel // nil: the agent chooses
	// ResolveModelTimeout fails a model request that nobody answers. Default:
	// 500 ms; negative: none.
	ResolveModelTimeout time.Duration
	// Inquiries answer what the agent asks besides.
	Inquiries Inquiries
	// OnAuthExpired is told, once in a session and on a goroutine of its own,
	// that the agent's login is missing or has expired. Optional.
	OnAuthExpired func(reason string)

	Limits session.Limits // zero: the defaults
	// Graces override the dialect's; zero fields keep them.
	Graces session.Graces
	// InterruptGrace is how long a running turn may take to stop before a
	// close goes on without it. Default: the dialect's.
	InterruptGrace time.Duration
	// MaxLine is the ceiling for one line, in bytes; a longer one is skipped
	// and reported. Default: 64 MiB.
	MaxLine int
	// Discard drops messages as they come: for those who only want results.
	Discard bool
	// ActorIntensity bounds how often the session's actors may crash before
	// the session fails. Default: 3 times in 30 s.
	ActorIntensity supervisor.Intensity
	// ActorBackoff delays their restarts. Default: 10 ms to 1 s.
	ActorBackoff supervisor.Backoff

	// OnEvent receives the session's events, one at a time and in order. When
	// it falls behind by more than 1,024 events the oldest are lost. Optional.
	OnEvent func(session.EventRecord)
	// Stderr receives the lines of the agent's stderr. It must be quick: while
	// it runs the agent's stderr is not read. Optional.
	Stderr func(line string)
}
