package router

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/agent-troupe/troupe/actors/ledger"
	"github.com/agent-troupe/troupe/actors/message"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Config is what a router needs.
type Config struct {
	Ledger    *ledger.Ledger
	Dialect   dialect.Dialect
	Opening   *Opening
	Session   *kernel.Address[message.ToSession]
	Callbacks *Callbacks
	// Uncalled hears of requests that none of them is there for, or Session does
	// when that is not there either.
	Uncalled *kernel.Address[message.ToCallbacks]
	// Other answers requests that are no callback's business: a response, or
	// an error text.
	Other func(r *ledger.Request) (response json.RawMessage, errText string)
}

// Opening is what a session says first. The incarnations of its router own it,
// one after the other.
type Opening struct {
	options  *dialect.Options // nil once the agent is initialized
	defaults dialect.UserDefaults
}

// Open returns the opening that the options ask for.
func Open(o *dialect.Options) Opening {
	return Opening{options: o, defaults: o.UserDefaults()}
}

// Callbacks are the addresses of the actors that call back, by kind.
type Callbacks [session.KindOther]kernel.Address[message.ToCallback]

// Actor is the router. A new incarnation finds in the ledger what the last one
// left.
type Actor struct {
	cfg   Config
	timer kernel.Timer
}

// New returns a router.
func New(cfg Config) *Actor { return &Actor{cfg: cfg} }

// Start implements [kernel.Behavior].
func (a *Actor) Start(c *kernel.Context[message.ToRouter]) error {
	return a.work(c)
}

// Handle implements [kernel.Behavior].
func (a *Actor) Handle(c *kernel.Context[message.ToRouter], m message.ToRouter) error {
	switch m.(type) {
	case message.FramesReady:
		return a.work(c)
	case message.WorkReady:
		return a.work(c)
	case message.DeadlineReached:
		a.cfg.Ledger.ExpireCalls()
		return a.work(c)
	}
	return fmt.Errorf("router: unexpected message %T", m)
}

// Stop implements [kernel.Behavior].
func (a *Actor) Stop(*kernel.Context[message.ToRouter]) {
	if a.timer != nil {
		a.timer.Stop()
	}
}

// work does all there is to do: sort what came, write what waits, set the
// timer of the next deadline. Doing it twice does no harm.
func (a *Actor) work(c *kernel.Context[message.ToRouter]) error {
	a.sort(c)
	if err := a.write(); err != nil && !errors.Is(err, session.ErrTransportClosed) && !errors.Is(err, session.ErrNoRoom) {
		return err
	}
	a.arm(c)
	if a.cfg.Ledger.Drained() {
		a.cfg.Session.Tell(c.Worker(), message.LedgerChanged{})
	}
	return nil
}

// sort empties the inbox.
func (a *Actor) sort(c *kernel.Context[message.ToRouter]) {
	var wake [session.KindOther + 1]bool
	changed := false
	for {
		f, edge, ok := a.cfg.Ledger.DeliverContent()
		changed = changed || edge
		if !ok {
			break
		}
		switch f.Type {
		case protocol.TypeControlResponse:
			if a.settle(f) { // its answer may list requests that wait
				wake[session.KindPermission], wake[session.KindInquiry] = true, true
			}
		case protocol.TypeControlRequest:
			if kind, ok := a.cfg.Ledger.Open(f); ok {
				wake[kind] = true
				changed = changed || a.cfg.Ledger.Watches(kind)
			}
		case protocol.TypeControlCancel, protocol.TypeControlCancelAlias:
			a.cfg.Ledger.Cancel(f)
			changed = true
		default:
			a.cfg.Ledger.Skip()
		}
	}
	for kind, address := range wake {
		if address && session.Kind(kind) != session.KindOther {
			changed = a.call(c, session.Kind(kind)) || changed
		}
	}
	if wake[session.KindOther] {
		for _, r := range a.cfg.Ledger.Take(session.KindOther) {
			response, errText := a.cfg.Other(r)
			a.cfg.Ledger.Answer(r, response, errText)
		}
	}
	if changed {
		a.cfg.Session.Tell(c.Worker(), message.LedgerChanged{})
	}
}

// call tells the actor that takes requests of a kind, or else the one that
// starts it. It reports whether the session has to hear, since neither is there.
func (a *Actor) call(c *kernel.Context[message.ToRouter], kind session.Kind) bool {
	switch {
	case a.cfg.Callbacks[kind].Live():
		a.cfg.Callbacks[kind].Tell(c.Worker(), message.RequestsReady{})
	case !a.cfg.Ledger.Waiting(kind):
	case a.cfg.Uncalled.Live():
		a.cfg.Uncalled.Tell(c.Worker(), message.RequestsReady{})
	default:
		return true
	}
	return false
}

// settle handles an answer and reports whether somebody waited for it.
func (a *Actor) settle(f protocol.Frame) bool {
	call := a.cfg.Ledger.Settle(f)
	if call == nil || !call.Own() {
		return call != nil
	}
	if !call.Setup { // the session waits for it
		a.cfg.Session.Tell(nil, message.LedgerChanged{})
		return true
	}
	resp, err := call.Answer()
	if err == nil && call.Subtype == "initialize" {
		err = a.initialized(resp.Response)
	}
	if err != nil {
		a.cfg.Ledger.SetInitFailure(err)
	}
	a.cfg.Session.Tell(nil, message.LedgerChanged{})
	return true
}

// initialized checks the answer to initialize and makes the calls that the
// dialect wants before the first user message.
func (a *Actor) initialized(response json.RawMessage) error {
	if err := a.cfg.Dialect.CheckInitialize(a.cfg.Opening.options, response); err != nil {
		return err
	}
	for _, req := range a.cfg.Dialect.AfterInitialize(a.cfg.Opening.options) {
		body, err := a.cfg.Dialect.Encode(req)
		if err != nil {
			return err
		}
		if _, err := a.cfg.Ledger.OpenCall(req.Subtype(), body, ledger.Setup()); err != nil {
			return err
		}
	}
	a.cfg.Ledger.SetInitialized(response)
	a.cfg.Opening.options = nil
	return nil
}

// write sends what waits: initialize first, calls and user messages once it is
// answered.
func (a *Actor) write() error {
	if a.cfg.Ledger.Initialized() == nil {
		if err := a.initialize(); err != nil {
			a.cfg.Ledger.SetInitFailure(err)
			a.cfg.Session.Tell(nil, message.LedgerChanged{})
			return nil
		}
	}
	turns, err := a.cfg.Ledger.WriteOut(func(m *protocol.UserMessage) ([]byte, error) {
		return a.cfg.Dialect.UserLine(a.cfg.Opening.defaults, m)
	})
	if turns {
		a.cfg.Session.Tell(nil, message.LedgerChanged{})
	}
	return err
}

// initialize makes the initialize call, once there is an agent.
func (a *Actor) initialize() error {
	if !a.cfg.Ledger.Connected() || a.cfg.Ledger.InitSent() {
		return nil
	}
	request, err := a.cfg.Dialect.Initialize(a.cfg.Opening.options)
	if err != nil {
		return err
	}
	limit := a.cfg.Ledger.Limits().Initialize
	_, err = a.cfg.Ledger.OpenCall("initialize", request, ledger.Setup(), ledger.Within(limit, "Limits.Initialize"))
	if errors.Is(err, session.ErrClosed) {
		return nil // the session knows
	}
	return err
}

// arm sets the timer for the first deadline among the open calls. It also
// notices an initialize call that ran out.
func (a *Actor) arm(c *kernel.Context[message.ToRouter]) {
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
	if at, ok := a.cfg.Ledger.NextDeadline(); ok {
		a.timer = c.After(at.Sub(c.Now()), message.DeadlineReached{})
	}
	if a.cfg.Ledger.InitFailure() != nil {
		a.cfg.Session.Tell(c.Worker(), message.LedgerChanged{})
	}
}
