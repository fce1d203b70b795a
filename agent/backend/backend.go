package backend

import (
	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/session"
)

// Backend is an agent that sessions can be started with. Options.Backend has the narrow
// type [session.Backend]; when a session is opened, its backend must be a Backend or an
// [agent.Program].
type Backend interface {
	session.Backend

	// Agent returns what to start for a session with the options in. It is called once
	// for each session, concurrently for several, before anything starts, and must not
	// start anything itself. It may set in.PathToExecutable. An error is best a
	// *[session.ConfigError]; with a Dialect beside it, the mistakes that the dialect finds
	// in the options are reported together with it.
	Agent(in *dialect.Input) (Agent, error)
}

// Agent is what a session starts. With no field but Dialect it is a process of this
// machine, or of Options.Spawner: the program that Dialect's Launch names.
type Agent struct {
	// Dialect is the protocol of the agent. Required.
	Dialect dialect.Dialect
	// Program is an agent in this process.
	Program agent.Program
	// NewProgram makes Program for an agent in this process that needs what the runtime
	// has. It is called once for each session. nil if Program is set.
	NewProgram func(Seams) agent.Program
	// Translate makes the spawner that the session uses from the one that starts the
	// agent's process: for agents whose process speaks another protocol than Dialect. It
	// is called once for each session. nil: the process speaks the protocol of Dialect.
	Translate func(Seams, session.Spawner) session.Spawner
	// Stores says that the agent of NewProgram stores its sessions where the dialect's
	// ConfigDir says, as the CLIs do: a session has a lease on this machine while it is open.
	Stores bool
	// Place names what the agents of NewProgram talk to, or of Translate are. Sessions with
	// the same place share a breaker. "": each has its own.
	Place string
}

// Local reports whether the agent is a process whose files are its own affair: neither in
// this process nor translated.
func (a *Agent) Local() bool { return a.Program == nil && a.NewProgram == nil && a.Translate == nil }

// Seams are what an agent in this process, or a translation, has of its runtime, so that
// it works in a simulation, too.
type Seams struct {
	Clock session.Clock       // the runtime's time, virtual in a simulation
	Exec  session.Executor    // starts and waits for goroutines
	Rand  session.Rand        // the runtime's randomness, from the seed in a simulation
	Emit  func(session.Event) // reports an event of the session
	// Spawner starts processes of this machine, which the runtime owns: it finds and ends
	// what they leave behind.
	Spawner session.Spawner
	// Disk is asked before the agent reads or changes a file, with the operation and the path;
	// its error is that of the operation. It is for simulations. nil in production.
	Disk func(op, path string) error
}
