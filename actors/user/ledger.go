package user

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Config is what a ledger needs of its surroundings.
type Config struct {
	Limits *session.Limits // see [machine.Complete]
	Clock  kernel.Clock
	Rand   kernel.Rand
	Exec   kernel.Executor
	// Budget is drawn on for lines above [machine.LargeLine]; nil: no limit.
	Budget *Budget
	// UserLine makes the line of a user message.
	UserLine func(*protocol.UserMessage) ([]byte, error)
	// Emit receives events. It must not call back into the ledger.
	Emit func(session.Event)
	// Router gives the routing an input. user: the goroutine is one of the user's, and
	// may be used for what follows; otherwise it only tells.
	Router func(in machine.Input, user bool)
	// Sent is told of each user message that is accepted, before the routing is; nil:
	// nobody wants to know.
	Sent func(ctx context.Context, at time.Time, m *protocol.UserMessage)
}

// Ledger is the user's side of a session: the stream, and those who wait for turns
// and calls, by their ids. The router tells it of effects; it tells the router what
// users want. Safe for concurrent use.
type Ledger struct {
	cfg  Config
	done chan struct{}

	mu     sync.Mutex
	sum    *machine.Summary
	facts  machine.Learned
	tasks  []machine.Task // that live
	stream stream
	turns  map[string]*Turn // open, by uuid; nil when there are none
	calls  map[string]*Call // open, by id
	idle   signal           // fires when what AwaitIdle and AdmitTurn look at may have changed

	terminal  bool
	draining  bool // no new user messages
	reason    error
	closing   error         // why the session will have ended; nil: it is closed by its user, or is not closing
	ready     chan struct{} // closed when the agent is initialized, or never will be
	readyOnce sync.Once
	ever      bool // the agent was initialized
	unusable  bool // it must not be used any more
}

// New returns an empty ledger.
func New(cfg Config) *Ledger {
	if cfg.Emit == nil {
		cfg.Emit = func(session.Event) {}
	}
	cfg.Limits = machine.Complete(cfg.Limits)
	l := &Ledger{cfg: cfg, sum: &machine.Summary{}, done: make(chan struct{}), ready: make(chan struct{})}
	l.stream.budget = cfg.Budget
	return l
}

// Limits returns the limits in force, defaults filled in.
func (l *Ledger) Limits() session.Limits { return *l.cfg.Limits }

// Apply carries out an effect of the routing. It reports false if the effect is for
// somebody else.
func (l *Ledger) Apply(e machine.Effect) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch e := e.(type) {
	case machine.Deliver:
		for i := range e.Entries {
			l.deliver(&e.Entries[i])
		}
		l.stream.wake.fire()
	case machine.Trim:
		l.trim(e.To)
	case machine.Unsure:
		l.stream.unsure, l.stream.unsureFrom = e.On, e.From
		l.stream.wake.fire()
	case machine.Moved:
		if t := l.turns[e.ID]; t != nil {
			t.startsAt, t.state = e.Starts, e.State
		}
		if !l.stream.begun {
			l.stream.begun = true
			l.stream.wake.fire()
		}
	case machine.TurnOver:
		l.turnOver(&e.Outcome)
		l.stream.wake.fire()
	case machine.CallOver:
		l.callOver(&e)
	case machine.Learned:
		l.facts = e
	case machine.Unusable:
		l.unusable = true
	case machine.TurnedAway:
		l.closing = e.Why
	case machine.TasksChanged:
		l.tasks = e.Tasks
		l.idle.fire()
	case machine.Changed:
		l.changed(e.Summary)
	default:
		return false
	}
	return true
}

// changed takes the summary; mu is held.
func (l *Ledger) changed(s *machine.Summary) {
	stalls := s.Stalled && !l.sum.Stalled
	l.sum = s
	l.idle.fire()
	if stalls { // what was read is not yet paid for
		l.stream.paidAt = l.now()
		l.pay(l.stream.bill(l.stream.waits, false), false)
	}
}

// End ends the session for good: whoever still waits gets the reason, and the stream
// ends after what it still holds. Only the first call counts. A nil reason is a normal
// end.
func (l *Ledger) End(reason error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.terminal {
		return
	}
	l.terminal, l.reason = true, reason
	why := reason
	if why == nil {
		why = session.ErrClosed
	}
	for _, id := range slices.Sorted(maps.Keys(l.calls)) {
		l.callOver(&machine.CallOver{ID: id, Err: why})
	}
	for _, id := range slices.Sorted(maps.Keys(l.turns)) {
		t := l.turns[id]
		l.turnOver(&machine.Outcome{ID: id, Err: why, Starts: t.startsAt, Ends: machine.NotStarted})
	}
	l.stream.unsure, l.stream.begun = false, true
	l.stream.releaseBudget()
	l.stream.wake.fire()
	l.idle.fire()
	l.readyOnce.Do(func() { close(l.ready) })
	l.cfg.Emit(&session.Ended{Reason: reason}) // before anybody can know: the id is free again
	close(l.done)
}

// Terminated reports whether the session has ended.
func (l *Ledger) Terminated() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.terminal
}

// Done is closed when the session has ended.
func (l *Ledger) Done() <-chan struct{} { return l.done }

// Reason is why the session ended; nil for a normal end. Call it after Done.
func (l *Ledger) Reason() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reason
}

// MarkReady says that the session takes work.
func (l *Ledger) MarkReady() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ever = true
	l.readyOnce.Do(func() { close(l.ready) })
}

// Usable reports whether the session takes work, or has once and the agent is not
// known to be of no use.
func (l *Ledger) Usable() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ever && !l.unusable
}

// Ready is closed when the session takes work, or has ended before.
func (l *Ledger) Ready() <-chan struct{} { return l.ready }

// Initialized is the initialize response; nil until it came.
func (l *Ledger) Initialized() json.RawMessage { return l.learned().Initialized }

// SessionID is the agent's own id of the session; "" until it told.
func (l *Ledger) SessionID() string { return l.learned().SessionID }

// Capabilities is what the agent says it can do.
func (l *Ledger) Capabilities() []string { return slices.Clone(l.learned().Capabilities) }

// WritesLost is what the agent says it could not write: a
// *[session.WritesLostError], or nil.
func (l *Ledger) WritesLost() error { return l.learned().WritesLost }

func (l *Ledger) learned() machine.Learned {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.facts
}

// Unread is the number of messages that were read from the agent and not consumed,
// and their bytes.
func (l *Ledger) Unread() (messages int, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stream.entries.len(), l.stream.bytes
}

// Owed is the number of messages that were consumed and whose credit has not gone back to
// the router yet, and their bytes.
func (l *Ledger) Owed() (messages int, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stream.unpaid.Messages, l.stream.unpaid.Bytes
}

// Delivered is the place that the next message of the stream will have.
func (l *Ledger) Delivered() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stream.next
}

// now is the time on the session's clock.
func (l *Ledger) now() time.Time { return l.cfg.Clock.Now() }

// signal is a broadcast that can be waited for again and again.
type signal struct{ ch chan struct{} }

// wait returns a channel that the next fire closes.
func (s *signal) wait() <-chan struct{} {
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *signal) fire() {
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}

// await is the executor's, for loops that look again.
func (l *Ledger) await(ctx context.Context, wait <-chan struct{}) error {
	return l.cfg.Exec.Await(ctx, wait)
}
