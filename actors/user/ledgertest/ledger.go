package ledgertest

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/actors/user"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Config is that of a routing and of its ledger. Router of the ledger is filled in.
type Config struct {
	machine.Config
	Clock    kernel.Clock
	Rand     kernel.Rand
	Exec     kernel.Executor
	Budget   *user.Budget
	UserLine func(*protocol.UserMessage) ([]byte, error)
	Emit     func(session.Event)

	// Told receives the effects that are for others than the ledger. Optional.
	Told func(machine.Effect)
}

// Outlet takes lines for the agent.
type Outlet interface {
	Write(lines []byte, as machine.Class) error
}

// Ledger is a ledger with its routing. Safe for concurrent use; a concurrent caller
// may return before what it told is handled.
type Ledger struct {
	*user.Ledger
	cfg Config

	mu      sync.Mutex // of what follows, and of the routing
	routing *machine.Routing
	outlet  Outlet
	timer   kernel.Timer
	due     Due
	open    []*Request
	paused  chan struct{}
	failed  error
	broken  error
	serving bool
	ended   bool

	queueMu sync.Mutex
	queue   []machine.Input
	busy    bool
}

// Due is what the session and the callback actors would hear.
type Due struct {
	Kinds   [session.KindOther]bool // of requests that came
	Changed bool                    // the summary is another one
}

// New returns one without a process.
func New(cfg Config) *Ledger {
	if cfg.Emit == nil {
		cfg.Emit = func(session.Event) {}
	}
	if cfg.Told == nil {
		cfg.Told = func(machine.Effect) {}
	}
	l := &Ledger{cfg: cfg}
	l.Ledger = user.New(user.Config{
		Limits: cfg.Limits, Clock: cfg.Clock, Rand: cfg.Rand, Exec: cfg.Exec, Budget: cfg.Budget, UserLine: cfg.UserLine,
		Emit: cfg.Emit, Router: func(in machine.Input, _ bool) { l.Tell(in) },
	})
	limits := l.Limits()
	cfg.Config.Limits = &limits
	l.routing = machine.New(cfg.Config)
	return l
}

// Budget is what large lines draw on.
func (l *Ledger) Budget() *user.Budget { return l.cfg.Budget }

// Tell gives the routing an input, after those that are being handled.
func (l *Ledger) Tell(in machine.Input) {
	l.queueMu.Lock()
	l.queue = append(l.queue, in)
	if l.busy {
		l.queueMu.Unlock()
		return
	}
	l.busy = true
	for len(l.queue) > 0 {
		next := l.queue[0]
		l.queue = l.queue[1:]
		l.queueMu.Unlock()
		l.mu.Lock()
		l.step(next)
		l.mu.Unlock()
		l.queueMu.Lock()
	}
	l.busy = false
	l.queueMu.Unlock()
}

func (l *Ledger) step(in machine.Input) {
	if l.broken != nil {
		return
	}
	for _, e := range l.try(in) {
		l.do(e)
	}
}

// try makes a step, which may panic.
func (l *Ledger) try(in machine.Input) (effects []machine.Effect) {
	defer func() {
		if p := recover(); p != nil {
			l.broken = &session.PanicError{Value: p, Message: fmt.Sprintf("%T", in), Stack: debug.Stack()}
			l.due.Changed, effects = true, nil
		}
	}()
	return l.routing.Step(l.cfg.Clock.Now(), in, nil)
}

func (l *Ledger) do(e machine.Effect) {
	switch e := e.(type) {
	case machine.Write:
		if l.outlet != nil {
			_ = l.outlet.Write(e.Line, e.As)
		}
	case machine.Run:
		l.open = append(l.open, &Request{
			ID: e.Frame.ID.Text(), Kind: e.Kind, Frame: e.Frame, Opened: e.Opened, seq: e.Seq,
		})
		l.due.Kinds[e.Kind] = true
	case machine.Cancel:
		l.cancel(e)
	case machine.SetTimer:
		l.setTimer(e.At)
	case machine.Pause:
		l.paused = make(chan struct{})
	case machine.Resume:
		close(l.paused)
		l.paused = nil
	case machine.Charge:
		l.cfg.Budget.Charge(e.Bytes)
	case machine.Emit:
		l.cfg.Emit(e.Event)
		return
	case machine.Unusable:
		l.failed, l.due.Changed = e.Err, true
		l.Apply(e)
	case machine.Changed:
		l.due.Changed = true
		l.Apply(e)
	default:
		if l.Apply(e) {
			return
		}
	}
	l.cfg.Told(e)
}

func (l *Ledger) setTimer(at time.Time) {
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	if !at.IsZero() {
		l.timer = l.cfg.Clock.AfterFunc(at.Sub(l.cfg.Clock.Now()), func() { l.Tell(machine.TimerFired{}) })
	}
}

// TakeDue returns what happened since the last call.
func (l *Ledger) TakeDue() Due {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.due
	l.due = Due{}
	return d
}

// SetOutlet connects the agent to an outlet, or disconnects it with nil.
func (l *Ledger) SetOutlet(o Outlet) {
	l.mu.Lock()
	l.outlet = o
	l.mu.Unlock()
	if o == nil {
		l.Tell(machine.Disconnected{})
	} else {
		l.Tell(machine.Connected{Gen: 1})
	}
}

// Put reads frames of the agent. It reports whether anything is [Due].
func (l *Ledger) Put(frames []protocol.Frame) bool {
	l.Tell(machine.FramesRead{Frames: frames})
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.due != Due{}
}

// PutSkipped reads a line of which only the head is known.
func (l *Ledger) PutSkipped(f protocol.Frame) bool { return l.Put([]protocol.Frame{f}) }

// Interrupt is a call of the session's own, under that id.
func (l *Ledger) Interrupt(id string) {
	l.Tell(machine.Called{ID: id, Subtype: "interrupt", Body: []byte(`{"subtype":"interrupt"}`), Own: true})
}

// ReadWait is what a reader waits for; nil: nothing. pressed is as in
// [machine.ReaderAsks].
func (l *Ledger) ReadWait(pressed bool) <-chan struct{} {
	if pressed && l.waitsToRead() != nil {
		l.Tell(machine.ReaderAsks{Pressed: true})
	}
	return l.waitsToRead()
}

func (l *Ledger) waitsToRead() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.paused
}

// EndOfInput is the end of the agent's stdout.
func (l *Ledger) EndOfInput() { l.Tell(machine.OutputEnded{}) }

// Taken says what the agent has taken.
func (l *Ledger) Taken(bytes int64) { l.Tell(machine.Taken{Bytes: bytes}) }

// Serve says whether requests are given out while the session closes.
func (l *Ledger) Serve(on bool) {
	l.mu.Lock()
	l.serving = on
	l.mu.Unlock()
	l.Tell(machine.Serve{On: on})
}

// BeginClosing turns new work away; abandon: by the user's wish.
func (l *Ledger) BeginClosing(abandon bool) {
	l.mu.Lock()
	serving := l.serving
	l.mu.Unlock()
	var reason error
	if !abandon {
		reason = errors.New("the agent is gone")
	}
	l.Tell(machine.Closing{Reason: reason, Serve: serving})
}

// Terminate ends the session.
func (l *Ledger) Terminate(reason error) {
	l.Tell(machine.Ended{Reason: reason})
	l.mu.Lock()
	l.setTimer(time.Time{})
	for _, r := range l.open { // if the routing is broken
		r.end(nil)
	}
	l.open, l.ended = nil, true
	l.mu.Unlock()
	l.End(reason)
}

// Broken is the panic of a step, or nil.
func (l *Ledger) Broken() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
}
