package router

import (
	"fmt"

	"github.com/agent-troupe/troupe/actors/ledger"
	"github.com/agent-troupe/troupe/actors/message"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// Config is what a router needs.
type Config struct {
	Ledger    *ledger.Ledger
	Session   *kernel.Address[message.ToSession]
	Callbacks *Callbacks
	// Uncalled hears of requests that none of them is there for, or Session does
	// when that is not there either.
	Uncalled *kernel.Address[message.ToCallbacks]
}

// Callbacks are the addresses of the actors that call back, by kind.
type Callbacks [session.KindOther]kernel.Address[message.ToCallback]

// Actor is the router. A new incarnation finds in the ledger what the last one
// left.
type Actor struct{ cfg Config }

// New returns a router.
func New(cfg Config) *Actor { return &Actor{cfg: cfg} }

// Start implements [kernel.Behavior]. What the last incarnation was about to tell is
// told again.
func (a *Actor) Start(c *kernel.Context[message.ToRouter]) error {
	due := ledger.Due{Changed: true}
	for kind := range due.Kinds {
		due.Kinds[kind] = a.cfg.Ledger.Waiting(session.Kind(kind))
	}
	a.tell(c, due)
	return nil
}

// Handle implements [kernel.Behavior].
func (a *Actor) Handle(c *kernel.Context[message.ToRouter], m message.ToRouter) error {
	switch m.(type) {
	case message.FramesReady, message.WorkReady:
		a.tell(c, a.cfg.Ledger.TakeDue())
		return nil
	}
	return fmt.Errorf("router: unexpected message %T", m)
}

// Stop implements [kernel.Behavior].
func (a *Actor) Stop(*kernel.Context[message.ToRouter]) {}

// tell wakes those for whom there is something to do. Doing it twice does no harm.
func (a *Actor) tell(c *kernel.Context[message.ToRouter], due ledger.Due) {
	for kind, waits := range due.Kinds {
		if waits {
			due.Changed = a.call(c, session.Kind(kind)) || due.Changed
		}
	}
	if due.Changed {
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
