package routertest

import (
	"errors"
	"runtime/debug"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/actors/router"
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

// Ledger is a ledger with its router. Safe for concurrent use; a concurrent caller
// may return before what it told is handled.
type Ledger struct {
	*user.Ledger
	cfg       Config
	box       *router.Box
	router    kernel.Address[machine.Input] // nobody lives at any of these
	session   kernel.Address[machine.LifeInput]
	transport kernel.Address[machine.ToTransport]
	callbacks router.Lazy

	mu      sync.Mutex // of what follows, and of the box
	outlet  Outlet
	due     Due
	open    []*Request
	paused  chan struct{}
	failed  error
	broken  error
	serving bool

	busyMu sync.Mutex
	busy   bool
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
	l.box = router.NewBox(router.Config{
		Clock: drains{cfg.Clock, l}, Ledger: l.Ledger, Budget: cfg.Budget, Emit: cfg.Emit,
		Self: &l.router, Session: &l.session, Transport: &l.transport, Callbacks: &l.callbacks,
		Named: func(string) {}, Mirror: func([]byte) {},
	}, cfg.Config)
	return l
}

// drains is a clock whose timers leave inputs that are handled at once.
type drains struct {
	kernel.Clock
	l *Ledger
}

func (d drains) AfterFunc(after time.Duration, f func()) kernel.Timer {
	return d.Clock.AfterFunc(after, func() {
		f()
		d.l.drain()
	})
}

// Budget is what large lines draw on.
func (l *Ledger) Budget() *user.Budget { return l.cfg.Budget }

// Tell gives the routing an input, after those that are being handled.
func (l *Ledger) Tell(in machine.Input) {
	l.router.Tell(nil, in)
	l.drain()
}

// drain handles what was told, unless somebody does.
func (l *Ledger) drain() {
	for l.router.Depth() > 0 {
		l.busyMu.Lock()
		busy := l.busy
		l.busy = true
		l.busyMu.Unlock()
		if busy {
			return // and looks again
		}
		l.mu.Lock()
		l.try(l.box.Drain)
		l.mu.Unlock()
		l.busyMu.Lock()
		l.busy = false
		l.busyMu.Unlock()
	}
}

// try has the box make steps, which may panic, and takes what they told.
func (l *Ledger) try(steps func()) {
	defer l.hear()
	defer func() {
		if p := recover(); p != nil {
			l.broken = &session.PanicError{Value: p, Stack: debug.Stack()}
			l.due.Changed = true
		}
	}()
	steps()
}

// hear takes what the box has told the actors around it.
func (l *Ledger) hear() {
	for _, m := range l.session.Take() {
		switch m := m.(type) {
		case machine.Unusable:
			l.failed, l.due.Changed = m.Err, true
		case machine.Changed:
			l.due.Changed = true
		}
	}
	if all := l.callbacks.Made(); all != nil {
		for kind := range all.Kinds {
			for _, m := range all.Kinds[kind].Take() {
				switch m := m.(type) {
				case machine.Run:
					l.open = append(l.open, &Request{ID: m.Frame.ID.Text(), Kind: m.Kind, Frame: m.Frame, Opened: m.Opened, seq: m.Seq})
					l.due.Kinds[m.Kind] = true
				case machine.Cancel:
					l.cancel(m)
				}
				l.cfg.Told(m.(machine.Effect))
			}
		}
	}
	for _, m := range l.transport.Take() {
		switch m := m.(type) {
		case machine.Write:
			if l.outlet != nil {
				_ = l.outlet.Write(m.Line, m.As)
			}
		case machine.Pause:
			l.paused = make(chan struct{})
		case machine.Resume:
			close(l.paused)
			l.paused = nil
		}
		l.cfg.Told(m.(machine.Effect))
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
	l.mu.Lock()
	l.try(func() { l.box.Finish(reason) })
	for _, r := range l.open { // if the routing is broken
		r.end(nil)
	}
	l.open = nil
	l.mu.Unlock()
	l.End(reason)
}

// Broken is the panic of a step, or nil.
func (l *Ledger) Broken() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
}
