package actors

import (
	"context"
	"encoding/json"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/agent-troupe/troupe/actors/hooks"
	"github.com/agent-troupe/troupe/actors/inquiry"
	"github.com/agent-troupe/troupe/actors/ledger"
	"github.com/agent-troupe/troupe/actors/mcp"
	"github.com/agent-troupe/troupe/actors/message"
	"github.com/agent-troupe/troupe/actors/router"
	"github.com/agent-troupe/troupe/actors/transport"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/machine"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// Config describes one session.
type Config struct {
	ID      string
	System  *kernel.System
	Dialect dialect.Dialect
	Options *dialect.Input
	Command transport.Command
	Spawner transport.Spawner
	Graces  session.Graces
	// InterruptGrace is how long a running turn may take to stop before the
	// transport is closed under it.
	InterruptGrace time.Duration
	MaxLine        int
	Limits         session.Limits
	Budget         *ledger.Budget
	Discard        bool

	Hooks              []hooks.Hook
	CanUseTool         session.CanUseTool
	PermissionTimeout  time.Duration
	MCPServers         []mcp.Server
	MCPLimits          map[string]time.Duration // of tools without a limit, by server
	ResolveModel       session.ResolveModel
	ResolveModelLimit  time.Duration
	Inquiries          inquiry.Callbacks
	ActorIntensity     supervisor.Intensity
	ActorBackoff       supervisor.Backoff
	Emit               func(session.Event)
	Stderr             func(line string)
	PanicOnIllegalStep bool // tests: an illegal transition is a crash, not an event
}

// Core is what one session is made of besides its actors, and what survives
// them: each incarnation of an actor borrows it. The fields are safe for
// concurrent use or owned by the session actor, as marked.
type Core struct {
	cfg    Config // without what only the opening needs
	Ledger *ledger.Ledger
	Link   *transport.Link
	Bridge *mcp.Bridge

	session   kernel.Address[message.ToSession]
	transport kernel.Address[message.ToTransport]
	router    kernel.Address[message.ToRouter]
	callback  router.Callbacks
	callbacks kernel.Address[message.ToCallbacks]

	state       atomic.Int32
	closeWanted atomic.Bool // by the user; survives a session actor that dies before it hears

	// Owned by the session actor, whichever incarnation lives.
	closeAsked  bool
	closeReason error     // nil: the user's wish
	until       time.Time // when the present step of the close ends: the interrupt, or the flush
	flushing    flush
	linkClosing bool
}

// NewCore prepares a session. Nothing runs yet.
func NewCore(cfg Config) *Core {
	if cfg.Emit == nil {
		cfg.Emit = func(session.Event) {}
	}
	k := &Core{cfg: cfg}
	k.cfg.Options, k.cfg.Command = nil, transport.Command{}
	k.Bridge = mcp.NewBridge(mcp.BridgeConfig{
		Servers: cfg.MCPServers, Limits: cfg.MCPLimits, Clock: cfg.System.Clock(), Exec: cfg.System.Executor(), Notify: k.mcpNotify,
		NotificationReply: cfg.Dialect.Traits().MCPNotificationReply, UnknownServer: cfg.Dialect.Traits().MCPUnknownServer,
	})
	talk, traits, defaults := cfg.Dialect, cfg.Dialect.Traits(), cfg.Options.UserDefaults()
	k.Ledger = ledger.New(ledger.Config{
		Config: machine.Config{
			Rules:  &rules{dialect: cfg.Dialect, hooks: cfg.Hooks, wanted: wantedBy(cfg.Options), options: cfg.Options},
			Limits: cfg.Limits, Discard: cfg.Discard, ErrorCodeKey: traits.ErrorCodeKey,
			ResultAfterCancelled: traits.ResultAfterCancelled, RepeatsInit: traits.RepeatsSystemInit,
			ProveGates: hooks.Proves(cfg.Dialect, cfg.Hooks),
		},
		Clock: cfg.System.Clock(), Rand: cfg.System.Rand(), Exec: cfg.System.Executor(),
		Budget: cfg.Budget, Emit: cfg.Emit, Wake: func() { k.router.Tell(nil, message.WorkReady{}) },
		UserLine: func(m *protocol.UserMessage) ([]byte, error) { return talk.UserLine(defaults, m) },
	})
	k.Link = transport.NewLink(transport.LinkConfig{
		Clock: cfg.System.Clock(), Exec: cfg.System.Executor(), Spawner: cfg.Spawner,
		Command: cfg.Command, Graces: cfg.Graces, MaxLine: cfg.MaxLine, Ledger: k.Ledger,
		Moved:  k.linkMoved,
		Role:   cfg.System.NewRole,
		Frames: func(w *kernel.Worker) { k.router.Tell(w, message.FramesReady{}) },
		Stderr: k.stderr,
	})
	return k
}

// ID is the session's name in its runtime.
func (k *Core) ID() string { return k.cfg.ID }

// State is the session's state at this instant.
func (k *Core) State() session.State { return session.State(k.state.Load()) }

// WorkReady tells the router that calls or user messages wait. The caller's
// goroutine may run the router, and what that tells, but no callback.
func (k *Core) WorkReady() {
	w := k.cfg.System.Guest()
	k.router.Tell(w, message.WorkReady{})
	w.Run()
}

// Close asks for the orderly end of the session. It returns at once; the end
// is told by Ledger.Done.
func (k *Core) Close() {
	k.closeWanted.Store(true)
	k.session.Tell(nil, message.CloseWanted{})
}

// Describe asks the session for its actors. One that ends meanwhile has none.
func (k *Core) Describe(ctx context.Context) ([]message.ActorInfo, error) {
	return kernel.Ask(ctx, &k.session, func(reply *kernel.Promise[[]message.ActorInfo]) message.ToSession {
		return message.Describe{Reply: reply}
	})
}

// Address is that of the session actor.
func (k *Core) Address() *kernel.Address[message.ToSession] { return &k.session }

// Retire closes the addresses of a session that has ended: no actor will follow.
func (k *Core) Retire() {
	k.session.Close()
	k.transport.Close()
	k.router.Close()
	k.callbacks.Close()
	for i := range k.callback {
		k.callback[i].Close()
	}
}

func (k *Core) linkMoved() {
	k.transport.Tell(nil, message.LinkMoved{})
	k.session.Tell(nil, message.LinkChanged{})
}

func (k *Core) changed() { k.session.Tell(nil, message.LedgerChanged{}) }

func (k *Core) gated(w *kernel.Worker) { k.session.Tell(w, message.LedgerChanged{}) }

func (k *Core) stderr(line string) {
	k.cfg.Emit(session.StderrLine{Line: line})
	if k.cfg.Stderr == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			err := &session.PanicError{Value: p, Message: "Stderr", Stack: debug.Stack()}
			k.cfg.Emit(session.CallbackFailed{Kind: "stderr", Name: "Stderr", Err: err})
		}
	}()
	k.cfg.Stderr(line)
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
	if k.Ledger.Calls() >= maxNotices { // nobody hears them
		return session.ErrNoRoom
	}
	if _, err := k.Ledger.OpenCall("mcp_message", request); err != nil {
		return err
	}
	k.WorkReady()
	return nil
}

// maxNotices is how many calls may be open before notifications of in-process
// servers are turned away.
const maxNotices = 1024
