package actors

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"runtime/debug"
	"sync/atomic"

	"github.com/agent-troupe/troupe/actors/callback"
	"github.com/agent-troupe/troupe/actors/child"
	"github.com/agent-troupe/troupe/actors/hooks"
	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/actors/mcp"
	"github.com/agent-troupe/troupe/actors/router"
	"github.com/agent-troupe/troupe/actors/transport"
	"github.com/agent-troupe/troupe/actors/user"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Config describes one session.
type Config struct {
	*Host
	ID      string
	Dialect dialect.Dialect
	// Input has the options and what goes with them. The session owns it, and it does not
	// change any more; the limits and the graces in it are in force without defaults.
	Input   *dialect.Input
	Command *session.Command // of the launch; given up after it
	// Relaunch is the command of another process. It gets the session's Input.
	Relaunch    func(in *dialect.Input, next machine.Launch) (*session.Command, error)
	Spawner     session.Spawner
	Leases      transport.Leases     // nil if no lease is needed
	Supervisors *session.Supervisors // valid and complete, and never changed; nil: the zero value
	Emit        func(session.Event)
	// Trace follows the session, with all functions set. nil: tracing is off.
	Trace *session.Trace
	// Starts admits each process before it is started. nil: no limit.
	Starts Starts
	// History reads what the agent has stored of a session. It gets the session's Input,
	// and may block. The zero value says that nothing is known. Nil if it cannot be read.
	History func(ctx context.Context, in *dialect.Input, sessionID string, wanted machine.Wanted) machine.History
	// Mirror gets the agent's reports of what it has stored, and nil when they are due. It
	// does not wait. nil: no mirror.
	Mirror func(report []byte)
	// Spent gets each result of the agent, which it must not change. It may be missing.
	Spent func(*protocol.ResultMessage)
	// ChildContext adds values to the contexts of Options.Children, or is nil.
	ChildContext func(context.Context) context.Context
}

// Starts limits the starts of the sessions of a runtime. Its methods do not wait.
type Starts interface {
	// Ask asks whether process gen may be started. The answer is [Core.Granted] or
	// [Core.Refused].
	Ask(ask machine.AskStart)
	// Over says what became of the start.
	Over(over machine.StartOver)
	// Judge takes what a result says of the model's API.
	Judge(machine.Judged)
	// Forget gives up all that the session has asked for.
	Forget()
	// Server returns what the calls of an in-process server's tools have to pass.
	Server(server session.MCPHandler) mcp.Guard
}

// Core is what one session is made of besides its actors, and what survives
// them: each incarnation of an actor borrows its part. The fields are safe for
// concurrent use or owned by an actor, as marked; what an actor owns is its parent's
// while it is not there.
type Core struct {
	cfg     Config // without the command
	program string // what is started, for errors
	User    *user.Side
	Bridge  *mcp.Bridge

	session   kernel.Address[machine.LifeInput]
	router    kernel.Address[machine.Input]
	transport kernel.Address[machine.ToTransport]
	callbacks router.Lazy

	routing router.Box                      // the router's
	running [session.KindOther]callback.Box // each the callback actor's of its kind
	life    *machine.Life                   // the session actor's

	children []*child.Box // of Options.Children, in their order

	named atomic.Pointer[string]           // the agent's id of the session; nil: not known
	turn  atomic.Pointer[machine.Interval] // that runs, for users; nil before the first
	link  atomic.Pointer[transport.Link]   // of the present process
	state atomic.Int32                     // of the session; for users
	alone atomic.Bool                      // no actor is left, nor will there be one; for the reader

	outbox kernel.Outbox[machine.Effect] // of the life
	tick   kernel.Timer                  // of the life; nil: none
	// resting wait for the outcome of their wish that the process goes. The session actor's.
	resting []*kernel.Promise[struct{}]
	// undecided ends the context of the user's function that decides about a death; nil
	// while none runs. Only the session actor uses it.
	undecided context.CancelCauseFunc
	// reading ends the context of the function that reads what the agent has stored; nil
	// while none runs. Only the session actor uses it.
	reading context.CancelCauseFunc
	detach  []func() // of the children
}

// input is the options and what goes with them.
func (k *Core) input() *dialect.Input { return k.cfg.Input }

// Input returns what the session was made of. It does not change.
func (k *Core) Input() *dialect.Input { return k.cfg.Input }

// NewCore prepares a session. Nothing runs yet.
func NewCore(cfg Config) *Core {
	if cfg.Emit == nil {
		cfg.Emit = func(session.Event) {}
	}
	if cfg.Supervisors == nil {
		cfg.Supervisors = &session.Supervisors{}
	}
	if cfg.Input == nil {
		cfg.Input = &dialect.Input{}
	}
	if cfg.Command == nil {
		cfg.Command = &session.Command{}
	}
	k := &Core{cfg: cfg, program: cmp.Or(append([]string{cfg.Command.Path}, cfg.Command.Names...)...)}
	k.cfg.Command = nil
	in, sys, talk, traits, defaults := cfg.Input, cfg.System, cfg.Dialect, cfg.Dialect.Traits(), cfg.Input.UserDefaults()
	var guard func(session.MCPHandler) mcp.Guard
	if cfg.Starts != nil {
		guard = cfg.Starts.Server
	}
	k.Bridge = mcp.NewBridge(mcp.BridgeConfig{
		Options: &in.Options, Clock: sys.Clock(), Exec: sys.Executor(), Notify: k.mcpNotify,
		Guard:             guard,
		NotificationReply: traits.MCPNotificationReply, UnknownServer: traits.MCPUnknownServer,
	})
	limits := in.Limits.WithDefaults()
	k.User = user.New(user.Config{
		Limits: &limits, Clock: sys.Clock(), Rand: sys.Rand(), Exec: sys.Executor(), Budget: cfg.Budget, Emit: cfg.Emit,
		UserLine: func(m *protocol.UserMessage) ([]byte, error) { return talk.UserLine(defaults, m) },
		Router:   k.tellRouter, Sent: cfg.sent(),
	})
	k.routing = *router.NewBox(k.routerConfig(), k.routingConfig(&limits))
	k.life = machine.NewLife(k.lifeConfig(&limits))
	k.link.Store(k.newLink(machine.Launch{Gen: 1}, cfg.Spawner, cfg.Command))
	k.newChildren()
	return k
}

// deps are the parts that answers need.
func (k *Core) deps() *router.Deps {
	return &router.Deps{Dialect: k.cfg.Dialect, Options: &k.input().Options, MCP: k.Bridge}
}

// routerConfig is the surroundings of the routing.
func (k *Core) routerConfig() router.Config {
	var judge func(machine.Judged)
	if k.cfg.Starts != nil {
		judge = k.cfg.Starts.Judge
	}
	return router.Config{
		Clock: k.cfg.System.Clock(), User: k.User, Budget: k.cfg.Budget, Emit: k.cfg.Emit, Judge: judge, Trace: k.cfg.Trace,
		Self: &k.router, Session: &k.session, Transport: &k.transport, Callbacks: &k.callbacks,
		Named: k.isNamed, Mirror: k.cfg.Mirror, Spent: k.cfg.Spent,
		Turned: func(turn machine.Interval) { k.turn.Store(&turn) },
	}
}

// isNamed takes the agent's id of the session.
func (k *Core) isNamed(id string) {
	if last := k.named.Load(); last == nil || *last != id {
		k.named.Store(&id)
	}
	k.Link().Named(id)
}

// Named is the agent's id of the session; "" until it is known. It takes no lock.
func (k *Core) Named() string {
	if id := k.named.Load(); id != nil {
		return *id
	}
	return ""
}

// lifeConfig is what the options and the dialect say to the life.
func (k *Core) lifeConfig(limits *session.Limits) machine.LifeConfig {
	o := &k.input().Options
	return machine.LifeConfig{
		Admission: k.cfg.Starts != nil,
		Backend:   k.cfg.Dialect.Name(), Program: k.program,
		InterruptGrace: o.InterruptGrace, FlushGrace: o.Graces.Flush, Recovery: k.recoveryConfig(o),
		PassivateAfter: o.PassivateAfter, Transient: !o.PersistSession.Or(true),
		Consumer: limits.Consumer, Start: max(limits.Start, 0), Interrupt: k.cfg.interrupt(k.cfg.Dialect, limits.Control, true), AuthExpired: k.cfg.Dialect.Traits().AuthExpiredExit,
	}
}

// newLink returns the link of a process that is to be launched, idle.
func (k *Core) newLink(e machine.Launch, spawner session.Spawner, command *session.Command) *transport.Link {
	sys := k.cfg.System
	o := &k.input().Options
	return transport.NewLink(transport.LinkConfig{
		Gen: e.Gen, Leases: k.cfg.Leases, SessionID: cmp.Or(e.Resume, sessionOf(o)), Clock: sys.Clock(), Exec: sys.Executor(), Spawner: spawner,
		Command: command, Graces: o.Graces, MaxLine: o.MaxLine, Budget: k.cfg.Budget, Emit: k.cfg.Emit,
		Router:  func(w *kernel.Worker, in machine.Input) { k.router.Tell(w, in) },
		Session: func(in machine.LifeInput) { k.session.Tell(nil, in) },
		Self:    func(m machine.ToTransport) { k.transport.Tell(nil, m) },
		Room:    k.room, Idle: func() { k.User.Rest() },
		Role: sys.NewRole, Stderr: k.stderr,
	})
}

// Link is that of the session's present process.
func (k *Core) Link() *transport.Link { return k.link.Load() }

// sessionOf is the agent's session that the first process is in; "": the agent chooses it.
func sessionOf(o *session.Options) string {
	if o.ForkSession {
		return o.SessionID
	}
	return cmp.Or(o.SessionID, o.Resume)
}

// prepare makes the link of a process that follows another one. A failure ends as a
// process that could not start.
func (k *Core) prepare(e machine.Launch) {
	if e.Gen == 1 {
		return // made with the core
	}
	spawner := k.cfg.Spawner
	command, err := k.cfg.Relaunch(k.input(), e)
	if err != nil {
		spawner = unlaunchable{err}
	}
	k.link.Store(k.newLink(e, spawner, command))
}

// unlaunchable is the spawner of a process that cannot be described.
type unlaunchable struct{ err error }

func (u unlaunchable) Spawn(context.Context, session.Command) (session.Process, error) {
	return nil, u.err
}

// routingConfig is what the options and the dialect say to the routing.
func (k *Core) routingConfig(limits *session.Limits) machine.Config {
	d, o := k.cfg.Dialect, &k.input().Options
	traits := d.Traits()
	return machine.Config{
		Rules: (*rules)(k), Limits: limits, Discard: o.Discard, Traced: k.cfg.Trace != nil, Mirrored: k.cfg.Mirror != nil,
		Stall: max(limits.Stall, 0), StallKill: limits.StallKill, Retry: max(limits.Retry, 0), Interrupt: k.cfg.interrupt(d, limits.Control, false),
		ErrorCodeKey: traits.ErrorCodeKey, Quiet: traits.QuietBeforeEOF,
		ResultAfterCancelled: traits.ResultAfterCancelled, RepeatsInit: traits.RepeatsSystemInit,
		ProveGates: hooks.Proves(d, o.Hooks),
		Branched:   o.ResumeSessionAt != "",
		Recovers:   o.MaxRestarts > 0, RemembersMessages: traits.RemembersMessages,
		KeepsTurns: traits.KeepsTurns,
	}
}

// maxLeft is how many batches of output a session without actors keeps for its end.
const maxLeft = 256

// room returns the channel that the reader of the agent's output has to wait for, or
// nil: it does not read while messages wait for the router, or for the transport actor,
// which may have a request to pause. Without actors no room is made: it reads so many
// batches, and the link gives up the rest after its grace.
func (k *Core) room() <-chan struct{} {
	if k.alone.Load() {
		return k.router.Room(maxLeft)
	}
	if wait := k.router.Room(1); wait != nil {
		return wait
	}
	return k.transport.Room(1)
}

// ID is the session's name in its runtime.
func (k *Core) ID() string { return k.cfg.ID }

// State is the session's state at this instant.
func (k *Core) State() session.State { return session.State(k.state.Load()) }

// tellRouter sends the routing an input of a user. The user's goroutine may run the
// router and its receivers, but no callback.
func (k *Core) tellRouter(in machine.Input, user bool) {
	if !user {
		k.router.Tell(nil, in)
		return
	}
	w := k.cfg.System.Guest()
	k.router.Tell(w, in)
	w.Run()
}

// Close asks for the orderly end of the session. It returns at once; User.Done is
// closed at the end.
func (k *Core) Close() { k.session.Tell(nil, machine.CloseAsked{}) }

// Granted lets process gen start.
func (k *Core) Granted(gen int) { k.session.Tell(nil, machine.Granted{Gen: gen}) }

// Refused ends the session in place of the start of process gen.
func (k *Core) Refused(gen int, err error) {
	k.session.Tell(nil, machine.Refused{Gen: gen, Err: err})
}

// Address is that of the session actor.
func (k *Core) Address() *kernel.Address[machine.LifeInput] { return &k.session }

// Broken reports whether the session actor died between two states of the session's
// life. Then no other can continue: only [Core.Fail] is possible.
func (k *Core) Broken() bool { return k.outbox.Broken() }

// Retire closes the addresses of a session that has ended: no actor will follow.
// Messages in them are dropped.
func (k *Core) Retire() {
	retire(&k.session)
	retire(&k.transport)
	retire(&k.router)
	if all := k.callbacks.Made(); all != nil {
		retire(&all.Supervisor)
		for i := range all.Kinds {
			retire(&all.Kinds[i])
		}
	}
	for _, b := range k.children {
		b.Retire()
	}
}

func retire[M any](at *kernel.Address[M]) {
	at.Take()
	at.Close()
}

// abandon ends the process of a session whose actors are gone for good. Output from
// before that is read and waits for finish.
func (k *Core) abandon() {
	k.alone.Store(true)
	k.transport.Take() // the reader waits while a message is here, and no actor is left to handle it
	k.routing.Drain()
	k.Link().Abandon()
}

// finish ends the session for good, without its actors.
func (k *Core) finish(reason error) {
	if k.tick != nil {
		k.tick.Stop()
	}
	k.endDecision()
	k.LeaveChildren()
	if k.cfg.Starts != nil {
		k.cfg.Starts.Forget()
	}
	k.routing.Finish(reason)
	k.User.End(reason)
}

// pass changes the state of a session that has no actor, if that is legal.
func (k *Core) pass(to session.State, why string) {
	if from := k.State(); machine.Legal(from, to) {
		k.enter(machine.Enter{From: from, To: to, Why: why})
	}
}

func (k *Core) enter(e machine.Enter) {
	k.state.Store(int32(e.To))
	if e.To == session.StatePassivated {
		k.User.Rest()
	}
	k.cfg.Emit(&session.StateChanged{From: e.From.String(), To: e.To.String(), Reason: e.Why})
	if e.To == session.StateReady {
		k.User.MarkReady()
	}
}

// Fail ends a session whose actor has ended and will not be restarted. It ends the
// process, delivers its output, and fails everything that waits with reason. It blocks
// until the link has ended and must run on its own task.
func (k *Core) Fail(reason error) {
	k.pass(session.StateClosing, reason.Error())
	k.abandon()
	_ = k.cfg.System.Executor().Await(context.Background(), k.Link().Done())
	k.pass(session.StateFailed, "")
	k.finish(errors.Join(reason, k.Link().Status().Leftover.Err))
}

func (k *Core) stderr(line string) {
	k.cfg.Emit(&session.StderrLine{Line: line})
	handle := k.input().Stderr
	if handle == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			err := &session.PanicError{Value: p, Message: "Stderr", Stack: debug.Stack()}
			k.cfg.Emit(&session.CallbackFailed{Kind: "stderr", Name: "Stderr", Err: err})
		}
	}()
	handle(line)
}

// mcpNotify sends a notification of an in-process server to the agent.
func (k *Core) mcpNotify(server, method string, params json.RawMessage) error {
	message, err := mcp.Notification(method, params)
	if err != nil {
		return err
	}
	request, err := k.cfg.Dialect.Encode(&protocol.MCPMessageRequest{ServerName: server, Message: message})
	if err != nil {
		return err
	}
	if k.User.Calls() >= maxNotices { // they have no receiver
		return session.ErrNoRoom
	}
	_, err = k.User.Call("mcp_message", request, 0)
	return err
}

// maxNotices is how many calls may be open before notifications of in-process
// servers are turned away.
const maxNotices = 1024
