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

// Config is what the user's side needs of its surroundings.
type Config struct {
	Limits *session.Limits // see [machine.Complete]
	Clock  kernel.Clock
	Rand   kernel.Rand
	Exec   kernel.Executor
	// Budget is drawn on for lines above [machine.LargeLine]; nil: no limit.
	Budget *Budget
	// UserLine makes the line of a user message.
	UserLine func(*protocol.UserMessage) ([]byte, error)
	// Emit receives events. It must not call back into the user's side.
	Emit func(session.Event)
	// Router gives the routing an input. user: the goroutine is one of the user's, and
	// may run the receivers; otherwise it only sends.
	Router func(in machine.Input, user bool)
	// Sent is called with each accepted user message, before the routing gets it. nil:
	// tracing is off.
	Sent func(ctx context.Context, at time.Time, m *protocol.UserMessage)
}

// Side is the user's side of a session: the stream, and those who wait for turns and
// calls, by their ids. It gets effects from the router, and sends it the users' inputs.
// Safe for concurrent use.
type Side struct {
	cfg  Config
	done chan struct{}

	mu     sync.Mutex
	sum    *machine.Summary
	facts  machine.Learned
	tasks  []machine.Task // that live
	stream stream
	turns  map[string]*Turn // open, by uuid; nil while empty
	calls  map[string]*Call // open, by id
	taps   []*tap           // nil while empty
	idle   signal           // fires when what AwaitIdle and Send look at may have changed

	terminal  bool
	draining  bool // no new user messages
	reason    error
	closing   error         // the reason of the end; nil if the user closes the session, or it is not closing
	ready     chan struct{} // closed when the agent is initialized, or never will be
	readyOnce sync.Once
	ever      bool // the agent was initialized
	unusable  bool // it must not be used any more
}

// New returns the user's side of a session that has not begun.
func New(cfg Config) *Side {
	if cfg.Emit == nil {
		cfg.Emit = func(session.Event) {}
	}
	cfg.Limits = machine.Complete(cfg.Limits)
	u := &Side{cfg: cfg, sum: &machine.Summary{}, done: make(chan struct{}), ready: make(chan struct{})}
	u.stream.budget = cfg.Budget
	return u
}

// Limits returns the limits in force, defaults filled in.
func (u *Side) Limits() session.Limits { return *u.cfg.Limits }

// Apply carries out an effect of the routing. It reports false if the effect has
// another receiver.
func (u *Side) Apply(e machine.Effect) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch e := e.(type) {
	case machine.Deliver:
		u.deliver(e.Entries)
		u.stream.wake.fire()
	case machine.Trim:
		u.trim(e.To)
	case machine.Unsure:
		u.stream.unsure, u.stream.unsureFrom = e.On, e.From
		u.stream.wake.fire()
	case machine.Moved:
		if t := u.turns[e.ID]; t != nil {
			t.startsAt, t.state = e.Starts, e.State
		}
		if !u.stream.begun {
			u.stream.begun = true
			u.stream.wake.fire()
		}
	case machine.TurnOver:
		u.turnOver(&e.Outcome)
		u.stream.wake.fire()
	case machine.CallOver:
		u.callOver(&e)
	case machine.Learned:
		u.facts = e
	case machine.Unusable:
		u.unusable = true
	case machine.TurnedAway:
		u.closing = e.Why
	case machine.TasksChanged:
		u.tasks = e.Tasks
		u.idle.fire()
	case machine.Changed:
		u.changed(e.Summary)
	default:
		return false
	}
	return true
}

// changed takes the summary; mu is held.
func (u *Side) changed(s *machine.Summary) {
	stalls := s.Stalled && !u.sum.Stalled
	u.sum = s
	u.idle.fire()
	if stalls { // what was read is not yet paid for
		u.stream.paidAt = u.now()
		u.pay(u.stream.bill(u.stream.waits, false), false)
	}
}

// End ends the session for good: remaining waiters get the reason, and the stream ends
// after what it still holds. Only the first call counts. A nil reason is a normal end.
func (u *Side) End(reason error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.terminal {
		return
	}
	u.terminal, u.reason = true, reason
	why := reason
	if why == nil {
		why = session.ErrClosed
	}
	for _, id := range slices.Sorted(maps.Keys(u.calls)) {
		u.callOver(&machine.CallOver{ID: id, Err: why})
	}
	for _, id := range slices.Sorted(maps.Keys(u.turns)) {
		t := u.turns[id]
		u.turnOver(&machine.Outcome{ID: id, Err: why, Starts: t.startsAt, Ends: machine.NotStarted})
	}
	u.stream.unsure, u.stream.begun = false, true
	u.stream.releaseBudget()
	u.stream.wake.fire()
	u.idle.fire()
	u.readyOnce.Do(func() { close(u.ready) })
	u.cfg.Emit(&session.Ended{Reason: reason}) // before anybody can know: the id is free again
	close(u.done)
}

// Terminated reports whether the session has ended.
func (u *Side) Terminated() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.terminal
}

// Done is closed when the session has ended.
func (u *Side) Done() <-chan struct{} { return u.done }

// Reason is why the session ended; nil for a normal end. Call it after Done.
func (u *Side) Reason() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.reason
}

// MarkReady says that the session takes work.
func (u *Side) MarkReady() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ever = true
	u.readyOnce.Do(func() { close(u.ready) })
}

// Usable reports whether the session takes work, or has once and the agent is not
// known to be of no use.
func (u *Side) Usable() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.ever && !u.unusable
}

// Ready is closed when the session takes work, or has ended before.
func (u *Side) Ready() <-chan struct{} { return u.ready }

// Initialized is the initialize response; nil until it came.
func (u *Side) Initialized() json.RawMessage { return u.learned().Initialized }

// SessionID is the agent's own id of the session; "" until it told.
func (u *Side) SessionID() string { return u.learned().SessionID }

// Capabilities is what the agent says it can do.
func (u *Side) Capabilities() []string { return slices.Clone(u.learned().Capabilities) }

// WritesLost is what the agent says it could not write: a
// *[session.WritesLostError], or nil.
func (u *Side) WritesLost() error { return u.learned().WritesLost }

func (u *Side) learned() machine.Learned {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.facts
}

// Unread is the number of messages that were read from the agent and not consumed,
// and their bytes.
func (u *Side) Unread() (messages int, bytes int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.stream.entries.len(), u.stream.bytes
}

// Stalled is since when the reader waits for a consumer; zero: it does not.
func (u *Side) Stalled() time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.sum.Stalled {
		return time.Time{}
	}
	return u.sum.StalledAt
}

// Owed is the number of messages that were consumed and whose credit has not gone back to
// the router yet, and their bytes.
func (u *Side) Owed() (messages int, bytes int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.stream.unpaid.Messages, u.stream.unpaid.Bytes
}

// Delivered is the place that the next message of the stream will have.
func (u *Side) Delivered() uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.stream.next
}

// now is the time on the session's clock.
func (u *Side) now() time.Time { return u.cfg.Clock.Now() }

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
func (u *Side) await(ctx context.Context, wait <-chan struct{}) error {
	return u.cfg.Exec.Await(ctx, wait)
}
