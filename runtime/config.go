package runtime

import (
	"context"
	"log/slog"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/backend"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/protocol"
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
	// Leases hands out the right to run a session of the agent, so that no session has two
	// agents at a time. An agent is started once it has the lease of the session that
	// Options.Resume or Options.SessionID names; the lease of one that it chooses itself
	// is got when it names it. The lease is given back when no process is left. Default:
	// [LocalLeases] for agents that Troupe starts as processes of this machine, none for
	// agents in this process, for those of Options.Spawner, and with PersistSession false. Where
	// the default cannot write a file, the agent runs without a lease, and a
	// [session.WarningIssued] says so; leases that are set here have to be got.
	Leases session.Leases
	// TempDir is the directory for the files that agents need. The next program of the
	// same user that starts an agent with the same TempDir removes the files of programs
	// that died; those of running programs are locked. Not on Windows. Default:
	// os.TempDir.
	TempDir string
	// StateDir is a directory where the runtime records the agents that run. If this
	// program dies without Shutdown, the next runtime with the same StateDir ends the
	// processes that are left of them, and reports it as a [session.WarningIssued] of no
	// session. Several programs may use it at a time. It is made if it is missing, with
	// mode 0700. Processes are found on Linux alone, by a mark in their environment.
	//
	// The private configuration directories of sessions (Options.Isolation) are in its
	// directory config then, and stay after Shutdown, so that later programs can resume the
	// sessions. They hold transcripts, and settings, unencrypted; remove those of sessions
	// that you do not need any more.
	// Default: none; nothing is recorded, and private directories end with Shutdown.
	StateDir string
	// KeepSessions is how long the transcripts of this runtime's own sessions are kept after
	// their last change, with their subagents and file checkpoints. Claude Code cleans up
	// after 30 days, but not what it runs with SettingSources None. Troupe records its
	// sessions in StateDir, which is required, and removes those whose time has come, also
	// of earlier programs with the same StateDir: when the runtime is made, and at most once
	// an hour when a session ends. Sessions that run, by their lease, stay, and so do those
	// of other programs. Sessions of Options.Spawner, and of agents in this process, are not
	// recorded. A session that cannot be removed is a [session.WarningIssued]. Negative is a
	// *[session.ConfigError]. Default: 0, without a limit.
	KeepSessions time.Duration
	// Files is what writes the records of KeepSessions and removes transcripts, so that a
	// loss of power leaves neither half a record nor a transcript without one. nil: the
	// machine.
	Files session.Files
	// Guard is the command of a helper that outlives this program. When the program dies,
	// however it does, the helper waits a second and then ends its remaining agents and
	// removes their files, as the next program with this StateDir would; KeepProcess is not
	// asked. {"troupe", "guard"} is such a command, and so is the path of any program that
	// calls [ServeGuard] first in main, such as this one (os.Executable). The helper runs
	// while agents run, in its own process session, and ignores SIGINT, SIGTERM and SIGHUP.
	// If it does not start, no agent does: the error is a *[session.StartError]. Guard
	// without StateDir is a *[session.ConfigError]. Linux; elsewhere it removes files at
	// most. Default: none.
	Guard []string
	// Supervisor decides when the actor that owns a session has crashed; each crash is an
	// error of this library. Every session has its own supervisor, so a crash affects no
	// other one, and the strategy gets one child; Options.Supervisors is for the actors
	// below it. If it gives up, the session fails with a *supervisor.Failure. Invalid values
	// are a *[session.ConfigError] of [New]. Zero fields: one_for_one, 3 times in 30 s, 10
	// ms to 1 s.
	Supervisor supervisor.Policy
	// Breakers are shared by the sessions of the runtime: they hold back starts of an agent
	// that does not come up. Invalid values are a *[session.ConfigError] of [New].
	Breakers Breakers
	// Admission limits how many sessions there are, and how fast they start. Negative values
	// are a *[session.ConfigError] of [New]. Default: no limits.
	Admission Admission
}

// Spec describes a session.
type Spec struct {
	// ID is the session's id in this runtime; it must be unique and must not contain / or
	// #. Default: a random id.
	ID string
	// Dialect is the protocol of the agent. Required.
	Dialect dialect.Dialect
	// Options are the session's options, with their Policy in force. Backend, Runtime,
	// CloseTimeout, OutputRepairs and the file that SystemPrompt names have an effect only in
	// package sdk.
	Options session.Options
	// ParentEnv is the environment to which Options.Env is added. nil: os.Environ.
	ParentEnv []string
	// SettingsContent is the content of the file Options.SettingsPath, if it was read.
	SettingsContent []byte
	// LoadedSettings are the settings files and the project's files of MCP servers that the agent loads by itself, as far
	// as they are known.
	LoadedSettings []dialect.SettingsFile
	// Warnings are placed before the warnings about Options.
	Warnings []session.Warning
	// ChildContext adds values to the contexts of Options.Children, which have the session:
	// see [SessionOf]. nil: no values.
	ChildContext func(context.Context) context.Context
	// Program is an agent in this process. nil: Options.Spawner starts the agent; if that
	// is nil, too, the agent is a process of this machine.
	Program agent.Program
	// NewProgram makes Program for an agent in this process that needs what the runtime has.
	// It is called once. nil if Program is set.
	NewProgram func(backend.Seams) agent.Program
	// Translate makes the spawner that the session uses from the one that starts the agent's
	// process: for agents whose process speaks another protocol than Dialect. It is called
	// once. nil: the process speaks the protocol of Dialect.
	Translate func(backend.Seams, session.Spawner) session.Spawner
	// ProgramStores says that NewProgram's agent stores its sessions on this machine, so that
	// they have leases like those of a process.
	ProgramStores bool
	// ProgramPlace names what the agents of NewProgram talk to, or of Translate are. Sessions
	// with the same place share a breaker ([Config].Breakers). "": each has its own.
	ProgramPlace string
}

// AddMCPServer adds an in-process MCP server to the session. Tell the agent about it
// with an mcp_set_servers request. AddMCPServer returns false if the session already has
// a server with that name.
func (s *Session) AddMCPServer(m *session.MCPServer) bool { return s.core.Bridge.Add(m.MCPHandler) }

// RemoveMCPServer removes an in-process MCP server from the session. Calls in flight
// continue.
func (s *Session) RemoveMCPServer(name string) { s.core.Bridge.Remove(name) }

// sessionKey is where the contexts of Options.Children have their session.
type sessionKey struct{}

// SessionOf returns the session of the child that ctx belongs to: the context of one of the
// functions of a [session.Behavior] or of Options.CanUseTool, or one derived from it. It is
// nil for any other context. The session may not be ready yet, or may be closing; its methods then wait, or
// say so.
func SessionOf(ctx context.Context) *Session {
	s, _ := ctx.Value(sessionKey{}).(*Session)
	return s
}

// askedOf makes the contexts of a CanUseTool those of [SessionOf].
func (s *Session) askedOf(ask session.CanUseTool) session.CanUseTool {
	if ask == nil {
		return nil
	}
	return func(ctx context.Context, r *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
		result, err := ask(context.WithValue(ctx, sessionKey{}, s), r)
		s.answered(r.ToolUseID, &result, err)
		return result, err
	}
}

// childContext adds the session, and what spec adds, to the contexts of its children.
func (s *Session) childContext(spec *Spec) func(context.Context) context.Context {
	add := spec.ChildContext
	return func(ctx context.Context) context.Context {
		ctx = context.WithValue(ctx, sessionKey{}, s)
		if add != nil {
			ctx = add(ctx)
		}
		return ctx
	}
}
