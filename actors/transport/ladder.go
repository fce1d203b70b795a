package transport

import (
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
	a.Link.Launch()
	a.Link.advance()
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
		if a.Link.Status().Stage == Stage(m.Stage) {
			a.Link.climb(Stage(m.Stage)+1, c.Now())
			a.arm(c)
		}
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
	ok := k.phase == Up && (k.stage == ClosedStdin || k.stage == Terminated)
	return k.stage, k.stageEnd, ok
}

// Want asks for the close ladder, from stage on. The transport actor, or the
// next one, takes it from there.
func (k *Link) Want(stage Stage) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.wanted = max(k.wanted, stage)
}

// climb goes up the ladder to at least stage. A process that is still being
// launched is dealt with when it is up.
func (k *Link) climb(stage Stage, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.climbTo(stage, now)
}

func (k *Link) climbTo(stage Stage, now time.Time) {
	if stage <= k.stage {
		return
	}
	k.stage = stage
	switch k.phase {
	case Idle:
		k.phase = Ended
		k.cfg.Exec.Go(func() { k.end(func() {}) })
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
		_ = k.proc.Signal(Terminate) // a process that is gone needs no signal
		k.stageEnd = now.Add(k.cfg.Graces.Terminate)
	case Killed:
		_ = k.proc.Kill()
		k.stageEnd = now
	}
}

// Abort ends the process at once, without an actor: the last resort of a
// session that cannot be supervised any more.
func (k *Link) Abort() { k.climb(Killed, k.cfg.Clock.Now()) }
