package ledger

import (
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/machine"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Outlet is where lines for the agent go.
type Outlet interface {
	// Write queues whole lines and never blocks. It fails when the transport is
	// closed; then the end of the process follows.
	Write(lines []byte, as machine.Class) error
}

// Flusher is an [Outlet] that a task may write to by itself, which spares the
// way through another one.
type Flusher interface {
	// Claim keeps what is queued from now on from being written, until Flush. It
	// reports false when somebody else is writing.
	Claim() bool
	// Flush writes what is queued. It may block.
	Flush()
}

// Config is what a ledger needs of its surroundings.
type Config struct {
	machine.Config
	Clock kernel.Clock
	Rand  kernel.Rand
	Exec  kernel.Executor
	// Budget is drawn on for lines above [machine.LargeLine]; nil: no limit.
	Budget *Budget
	// UserLine makes the line of a user message.
	UserLine func(*protocol.UserMessage) ([]byte, error)
	// Emit receives events. It must not call back into the ledger.
	Emit func(session.Event)
	// Wake tells the router, on a task of the clock, that something is [Due].
	Wake func()
}

// Ledger is the surviving state of one session: its routing, a value, under a lock,
// with those who wait for it. Every method is one atomic step.
type Ledger struct {
	cfg  Config
	done chan struct{}

	mu       sync.Mutex
	routing  *machine.Routing
	sum      machine.Summary
	spare    []machine.Effect
	outlet   Outlet
	stream   stream
	turns    map[string]*Turn // open, by uuid; nil when there are none
	calls    map[string]*Call // open, by id
	requests []*Request       // open and given to an actor, or about to be; as they came
	untaken  [session.KindOther]fifo[*Request]
	due      Due
	timer    kernel.Timer // nil: none
	idle     signal       // fires when what AwaitIdle and AdmitTurn look at may have changed
	lastRead time.Time
	paused   bool
	reader   signal // wakes a reader that waits for credit
	// What the reader waits for other than its consumer, if it does.
	readerWaits string
	readerSince time.Time

	broken    error // a step has panicked: the routing is not trusted any more
	terminal  bool
	reason    error
	ready     chan struct{} // closed when the agent is initialized, or never will be
	readyOnce sync.Once
}

// Due is what the router has to tell others.
type Due struct {
	Kinds   [session.KindOther]bool // requests of these kinds may wait to be taken
	Changed bool                    // the session has to look
}

func (d *Due) any() bool { return *d != Due{} }

// New returns an empty ledger.
func New(cfg Config) *Ledger {
	if cfg.Emit == nil {
		cfg.Emit = func(session.Event) {}
	}
	if cfg.Wake == nil {
		cfg.Wake = func() {}
	}
	l := &Ledger{cfg: cfg, done: make(chan struct{}), ready: make(chan struct{}), routing: machine.New(cfg.Config)}
	l.stream.budget = cfg.Budget
	return l
}

// Limits returns the limits in force, defaults filled in.
func (l *Ledger) Limits() session.Limits { return l.routing.Limits() }

// Budget is what large lines draw on; nil: no limit.
func (l *Ledger) Budget() *Budget { return l.cfg.Budget }

// step hands an input to the routing and carries out what it asks for; mu is held.
// A panic on the way is a bug of ours, or of the dialect: nothing that the routing
// knows is trusted then, and the session ends.
func (l *Ledger) step(in machine.Input) {
	if l.broken != nil {
		return
	}
	returned := false
	defer func() {
		if returned {
			return
		}
		l.broken = &session.PanicError{Value: recover(), Message: fmt.Sprintf("%T", in), Stack: debug.Stack()}
		l.due.Changed = true
		l.cfg.Wake()
	}()
	l.steps(in)
	returned = true
}

func (l *Ledger) steps(in machine.Input) {
	effects := l.routing.Step(l.cfg.Clock.Now(), in, l.spare[:0])
	l.spare = nil // an effect may step again
	for _, e := range effects {
		l.do(e)
	}
	clear(effects)
	l.spare = effects[:0]
	if cap(effects) > maxSpare {
		l.spare = nil
	}
}

// maxSpare is how many effects a session keeps room for.
const maxSpare = 16

func (l *Ledger) do(e machine.Effect) {
	switch e := e.(type) {
	case machine.Write:
		if l.outlet != nil {
			_ = l.outlet.Write(e.Line, e.As) // a dead transport ends the session by itself
		}
	case machine.Run:
		l.enter(&Request{ID: e.Frame.ID.Text(), Kind: e.Kind, Frame: e.Frame, Opened: e.Opened, seq: e.Seq})
	case machine.Cancel:
		l.cancel(e)
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
	case machine.TurnOver:
		l.turnOver(&e.Outcome)
		l.stream.wake.fire()
	case machine.CallOver:
		l.callOver(&e)
	case machine.SetTimer:
		l.setTimer(l.routing.Timer)
	case machine.Pause:
		l.paused = true
	case machine.Resume:
		l.paused = false
		l.reader.fire()
	case machine.Charge:
		l.cfg.Budget.Charge(e.Bytes)
	case machine.Changed:
		l.sum, l.due.Changed = l.routing.Told, true // an effect before may have stepped
		l.idle.fire()
	case machine.Emit:
		l.cfg.Emit(e.Event)
	}
}

func (l *Ledger) setTimer(at time.Time) {
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	if !at.IsZero() {
		l.timer = l.cfg.Clock.AfterFunc(at.Sub(l.cfg.Clock.Now()), l.timerFired)
	}
}

func (l *Ledger) timerFired() {
	l.mu.Lock()
	l.step(machine.TimerFired{})
	tell := l.due.any()
	l.mu.Unlock()
	if tell {
		l.cfg.Wake()
	}
}

// TakeDue returns what has to be told since the last call, and to whom.
func (l *Ledger) TakeDue() Due {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.due
	l.due = Due{}
	return d
}

// SetOutlet names where lines go from now on, which begins with initialize; nil when
// there is no agent.
func (l *Ledger) SetOutlet(o Outlet) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outlet = o
	if o == nil {
		l.step(machine.Disconnected{})
		return
	}
	l.step(machine.Connected{Gen: 1})
}

// WriteThrough calls do. What it queues for the agent is written by flush, which
// the caller has to call and which may block, unless somebody else is writing.
func (l *Ledger) WriteThrough(do func()) (flush func()) {
	l.mu.Lock()
	out, ok := l.outlet.(Flusher)
	l.mu.Unlock()
	if !ok || !out.Claim() {
		do()
		return func() {}
	}
	done := false
	defer func() {
		if !done { // it panicked
			out.Flush()
		}
	}()
	do()
	done = true
	return out.Flush
}

// Taken says that the agent has taken some of what was written to it.
func (l *Ledger) Taken(bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.step(machine.Taken{Bytes: bytes})
}

// Serve says whether requests of the agent are still given out while the session
// is closing. Once they are not, those that are open are denied.
func (l *Ledger) Serve(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.step(machine.Serve{On: on})
}

// BeginClosing turns away new work: turns and calls fail, and requests of the
// agent are denied at once unless they are still served. Unread messages stay readable. When the end is the
// user's wish (abandon) and nobody reads, messages beyond Limits.HardBytes are
// dropped, so that the close does not wait for a reader.
func (l *Ledger) BeginClosing(abandon bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.step(machine.Closing{Abandon: abandon})
	l.reader.fire()
}

// Terminate ends the session for good: open turns, calls and requests end with
// reason, and the stream ends after what it still holds. Only the first call
// counts. A nil reason is a normal end.
func (l *Ledger) Terminate(reason error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.terminal {
		return
	}
	l.terminal, l.reason = true, reason
	if l.step(machine.Ended{Reason: reason}); l.broken != nil {
		l.abort(reason)
	}
	l.outlet = nil
	l.stream.settle()
	l.setTimer(time.Time{})
	l.reader.fire()
	l.stream.wake.fire()
	l.idle.fire()
	l.MarkReady()
	l.cfg.Emit(session.Ended{Reason: reason}) // before anybody can know: the id is free again
	close(l.done)
}

// abort ends whatever waits, without the routing.
func (l *Ledger) abort(reason error) {
	for _, r := range slices.Clone(l.requests) {
		l.cancel(machine.Cancel{Seq: r.seq})
	}
	for _, id := range slices.Sorted(maps.Keys(l.calls)) {
		l.callOver(&machine.CallOver{ID: id, Err: reason})
	}
	for _, id := range slices.Sorted(maps.Keys(l.turns)) {
		t := l.turns[id]
		l.turnOver(&machine.Outcome{ID: id, Err: reason, Starts: t.startsAt, Ends: machine.NotStarted})
	}
	l.stream.unsure = false
}

// Broken is the panic inside a step after which the routing is not trusted, or nil.
// The agent must not live on: what it asks is not answered any more.
func (l *Ledger) Broken() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
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
func (l *Ledger) MarkReady() { l.readyOnce.Do(func() { close(l.ready) }) }

// Ready is closed when the session takes work, or has ended before.
func (l *Ledger) Ready() <-chan struct{} { return l.ready }

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

// Emit reports an event of the session.
func (l *Ledger) Emit(e session.Event) { l.cfg.Emit(e) }

// await is the executor's, for loops that look again.
func (l *Ledger) await(ctx context.Context, wait <-chan struct{}) error {
	return l.cfg.Exec.Await(ctx, wait)
}
