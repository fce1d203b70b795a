package user_test

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

// sideConfig is that of a routing and of the user's side, whose Router is filled in.
type sideConfig struct {
	machine.Config
	Clock    kernel.Clock
	Rand     kernel.Rand
	Exec     kernel.Executor
	Budget   *user.Budget
	UserLine func(*protocol.UserMessage) ([]byte, error)
	Emit     func(session.Event)

	// Told receives the effects that are for others than the user's side. Optional.
	Told func(machine.Effect)
}

// Outlet takes lines for the agent.
type Outlet interface {
	Write(lines []byte, as machine.Class) error
}

// side is the user's side with its router. Safe for concurrent use; a concurrent caller
// may return before what it told is handled.
type side struct {
	*user.Side
	cfg       sideConfig
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

// newSide returns one without a process.
func newSide(cfg sideConfig) *side {
	if cfg.Emit == nil {
		cfg.Emit = func(session.Event) {}
	}
	if cfg.Told == nil {
		cfg.Told = func(machine.Effect) {}
	}
	s := &side{cfg: cfg}
	s.Side = user.New(user.Config{
		Limits: cfg.Limits, Clock: cfg.Clock, Rand: cfg.Rand, Exec: cfg.Exec, Budget: cfg.Budget, UserLine: cfg.UserLine,
		Emit: cfg.Emit, Router: func(in machine.Input, _ bool) { s.Tell(in) },
	})
	limits := s.Limits()
	cfg.Config.Limits = &limits
	s.box = router.NewBox(router.Config{
		Clock: drains{cfg.Clock, s}, User: s.Side, Budget: cfg.Budget, Emit: cfg.Emit,
		Self: &s.router, Session: &s.session, Transport: &s.transport, Callbacks: &s.callbacks,
		Named: func(string) {}, Mirror: func([]byte) {},
	}, cfg.Config)
	return s
}

// drains is a clock whose timers leave inputs that are handled at once.
type drains struct {
	kernel.Clock
	s *side
}

func (d drains) AfterFunc(after time.Duration, f func()) kernel.Timer {
	return d.Clock.AfterFunc(after, func() {
		f()
		d.s.drain()
	})
}

// Budget is what large lines draw on.
func (s *side) Budget() *user.Budget { return s.cfg.Budget }

// Tell gives the routing an input, after those that are being handled.
func (s *side) Tell(in machine.Input) {
	s.router.Tell(nil, in)
	s.drain()
}

// drain handles what was told, unless another goroutine does.
func (s *side) drain() {
	for s.router.Depth() > 0 {
		s.busyMu.Lock()
		busy := s.busy
		s.busy = true
		s.busyMu.Unlock()
		if busy {
			return // and looks again
		}
		s.mu.Lock()
		s.try(s.box.Drain)
		s.mu.Unlock()
		s.busyMu.Lock()
		s.busy = false
		s.busyMu.Unlock()
	}
}

// try has the box make steps, which may panic, and takes what they told.
func (s *side) try(steps func()) {
	defer s.hear()
	defer func() {
		if p := recover(); p != nil {
			s.broken = &session.PanicError{Value: p, Stack: debug.Stack()}
			s.due.Changed = true
		}
	}()
	steps()
}

// hear takes what the box has told the actors around it.
func (s *side) hear() {
	for _, m := range s.session.Take() {
		switch m := m.(type) {
		case machine.Unusable:
			s.failed, s.due.Changed = m.Err, true
		case machine.Changed:
			s.due.Changed = true
		}
	}
	if all := s.callbacks.Made(); all != nil {
		for kind := range all.Kinds {
			for _, m := range all.Kinds[kind].Take() {
				switch m := m.(type) {
				case machine.Run:
					s.open = append(s.open, &Request{ID: m.Frame.ID.Text(), Kind: m.Kind, Frame: *m.Frame, Opened: m.Opened, seq: m.Seq})
					s.due.Kinds[m.Kind] = true
				case machine.Cancel:
					s.cancel(m)
				}
				s.cfg.Told(m.(machine.Effect))
			}
		}
	}
	for _, m := range s.transport.Take() {
		switch m := m.(type) {
		case machine.Write:
			if s.outlet != nil {
				_ = s.outlet.Write(m.Line, m.As)
			}
		case machine.Pause:
			s.paused = make(chan struct{})
		case machine.ReadOn:
			close(s.paused)
			s.paused = nil
		}
		s.cfg.Told(m.(machine.Effect))
	}
}

// TakeDue returns what happened since the last call.
func (s *side) TakeDue() Due {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.due
	s.due = Due{}
	return d
}

// SetOutlet connects the agent to an outlet, or disconnects it with nil.
func (s *side) SetOutlet(o Outlet) {
	s.mu.Lock()
	s.outlet = o
	s.mu.Unlock()
	if o == nil {
		s.Tell(machine.Disconnected{})
	} else {
		s.Tell(machine.Connected{Gen: 1})
	}
}

// Put reads frames of the agent. It reports whether anything is [Due].
func (s *side) Put(frames []protocol.Frame) bool {
	s.Tell(machine.FramesRead{Frames: frames})
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.due != Due{}
}

// PutSkipped reads a line of which only the head is known.
func (s *side) PutSkipped(f protocol.Frame) bool { return s.Put([]protocol.Frame{f}) }

// Interrupt is a call of the session's own, under that id.
func (s *side) Interrupt(id string) {
	s.Tell(machine.Called{ID: id, Subtype: "interrupt", Body: []byte(`{"subtype":"interrupt"}`), Own: true})
}

// ReadWait is what a reader waits for; nil: nothing. pressed is as in
// [machine.ReaderAsks].
func (s *side) ReadWait(pressed bool) <-chan struct{} {
	if pressed && s.waitsToRead() != nil {
		s.Tell(machine.ReaderAsks{Pressed: true})
	}
	return s.waitsToRead()
}

func (s *side) waitsToRead() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.paused
}

// EndOfInput is the end of the agent's stdout.
func (s *side) EndOfInput() { s.Tell(machine.OutputEnded{}) }

// Taken says what the agent has taken.
func (s *side) Taken(bytes int64) { s.Tell(machine.Taken{Bytes: bytes}) }

// Serve says whether requests are given out while the session closes.
func (s *side) Serve(on bool) {
	s.mu.Lock()
	s.serving = on
	s.mu.Unlock()
	s.Tell(machine.Serve{On: on})
}

// BeginClosing turns new work away; abandon: by the user's wish.
func (s *side) BeginClosing(abandon bool) {
	s.mu.Lock()
	serving := s.serving
	s.mu.Unlock()
	var reason error
	if !abandon {
		reason = errors.New("the agent is gone")
	}
	s.Tell(machine.Closing{Reason: reason, Serve: serving})
}

// Terminate ends the session.
func (s *side) Terminate(reason error) {
	s.mu.Lock()
	s.try(func() { s.box.Finish(reason) })
	for _, r := range s.open { // if the routing is broken
		r.end(nil)
	}
	s.open = nil
	s.mu.Unlock()
	s.End(reason)
}

// Broken is the panic of a step, or nil.
func (s *side) Broken() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken
}
