package transport

import (
	"errors"
	"fmt"
	"time"

	"github.com/agent-troupe/troupe/actors/message"
	"github.com/agent-troupe/troupe/internal/kernel"
)

// Stage is a step of the close ladder.
type Stage int

// The ladder. Each step that does not end the process within its grace leads
// to the next one.
const (
	Open        Stage = iota // not closing
	ClosedStdin              // stdin is closed
	Terminated               // SIGTERM was sent to the group
	Killed                   // SIGKILL was sent to the group
)

func (s Stage) String() string {
	return [...]string{"open", "stdin closed", "terminated", "killed"}[s]
}

// Actor drives one link. A new incarnation goes on where the last one was.
type Actor struct {
	Link *Link
	// Changed tells the session.
	Changed func()

	timer kernel.Timer
}

// Start implements [kernel.Behavior].
func (a *Actor) Start(c *kernel.Context[message.ToTransport]) error {
	a.Link.advance() // a session that was closed before it started launches nothing
	a.Link.Launch()
	a.arm(c)
	a.Changed()
	return nil
}

// Handle implements [kernel.Behavior].
func (a *Actor) Handle(c *kernel.Context[message.ToTransport], m message.ToTransport) error {
	switch m := m.(type) {
	case message.LinkMoved:
		a.Link.advance()
		a.arm(c)
		a.Changed()
	case message.StageOver:
		a.Link.stageOver(Stage(m.Stage), c.Now())
		a.arm(c)
	default:
		return fmt.Errorf("transport: unexpected message %T", m)
	}
	return nil
}

// Stop implements [kernel.Behavior].
func (a *Actor) Stop(*kernel.Context[message.ToTransport]) {
	if a.timer != nil {
		a.timer.Stop()
	}
}

// arm sets the timer of the present stage.
func (a *Actor) arm(c *kernel.Context[message.ToTransport]) {
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
	if stage, end, ok := a.Link.stageTimer(); ok {
		a.timer = c.After(end.Sub(c.Now()), message.StageOver{Stage: int(stage)})
	}
}

// stageTimer is the end of the present stage, if it has one.
func (k *Link) stageTimer() (Stage, time.Time, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.stage, k.stageEnd, k.phase == Up && k.stage > Open
}

// stageOver goes on when a stage did not end the process within its grace.
func (k *Link) stageOver(stage Stage, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case stage != k.stage || k.phase != Up:
	case stage == Killed:
		k.phase = Exited
		k.cfg.Exec.Go(k.unkillable)
	default:
		k.late = stage+1 == Killed
		k.climbTo(stage+1, now)
	}
}

// Want asks for the close ladder, from stage on. The transport actor, or the
// next one, takes it from there.
func (k *Link) Want(stage Stage) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.wanted = max(k.wanted, stage)
}

// wantBecause is Want for a reason of the link's own, which an [ExitError] says.
func (k *Link) wantBecause(stage Stage, why string) {
	k.mu.Lock()
	if k.why == "" && k.wanted == Open {
		k.why = why
	}
	k.mu.Unlock()
	k.Want(stage)
}

// climbTo goes up the ladder to at least stage; mu is held. A process that is
// still being launched is dealt with when it is up.
func (k *Link) climbTo(stage Stage, now time.Time) {
	if stage <= k.stage {
		return
	}
	k.stage = stage
	switch k.phase {
	case Idle:
		k.phase = Ended
		k.cfg.Exec.Go(func() { k.end(func() {}) })
	case Launching:
		k.stopLaunch(errClosing)
	case Up:
		k.act(now)
	}
}

// advance climbs to the stage that is wanted, and acts on one that was wanted
// before the process was up.
func (k *Link) advance() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.climbTo(k.wanted, k.cfg.Clock.Now())
	if k.phase == Up && k.stage > Open && k.stageEnd.IsZero() {
		k.act(k.cfg.Clock.Now())
	}
}

func (k *Link) act(now time.Time) {
	switch k.stage {
	case Open:
	case ClosedStdin:
		k.writer.CloseAfterFlush()
		k.stageEnd = now.Add(k.cfg.Graces.EOF)
	case Terminated:
		k.signal = Terminate.String()
		_ = k.proc.Signal(Terminate) // a process that is gone needs no signal
		k.stageEnd = now.Add(k.cfg.Graces.Terminate)
	case Killed:
		k.signal = "SIGKILL"
		_ = k.proc.Kill()
		k.stageEnd = now.Add(k.cfg.Graces.Sweep)
	}
}

var errClosing = errors.New("the session was closed while its agent was being started")

// Abort ends the process at once, without an actor: the last resort of a
// session that cannot be supervised any more.
func (k *Link) Abort() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.climbTo(Killed, k.cfg.Clock.Now())
}

// Expire is Abort by somebody whose time to wait has run out.
func (k *Link) Expire() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.late = k.late || k.stage < Killed
	k.climbTo(Killed, k.cfg.Clock.Now())
}
