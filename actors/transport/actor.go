package transport

import (
	"fmt"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/internal/kernel"
)

// Actor drives the link of the session's present process. A new incarnation continues
// where the last one was.
type Actor struct {
	Present func() *Link

	timer kernel.Timer
}

// launched says that the process is up. From: the link.
type launched struct{}

// stageOver ends the present stage of the ladder. From: the clock.
type stageOver struct{ stage machine.Stage }

func (launched) ToTransport()  {}
func (stageOver) ToTransport() {}

// Start implements [kernel.Behavior].
func (a *Actor) Start(c *kernel.Context[machine.ToTransport]) error {
	a.arm(c)
	return nil
}

// Handle implements [kernel.Behavior].
func (a *Actor) Handle(c *kernel.Context[machine.ToTransport], m machine.ToTransport) error {
	k := a.Present()
	switch m := m.(type) {
	case machine.Write:
		if k.write(m.Line, m.As) {
			c.Go(func() func(*kernel.Worker) { k.writer.run(); return nil })
		}
	case machine.Works:
		k.works.Store(m.On)
	case machine.Pause:
		k.pause()
	case machine.ReadOn:
		k.resume()
	case machine.Launch:
		k.Launch()
		a.arm(c) // of a link before
	case machine.Climb:
		if m.Gen != 0 && m.Gen != k.cfg.Gen {
			break // its process died while this actor was down
		}
		k.want(m.Stage, m.Why)
		k.advance()
		a.arm(c)
	case launched:
		k.advance()
		a.arm(c)
	case stageOver:
		k.stageOver(m.stage, c.Now())
		a.arm(c)
	default:
		return fmt.Errorf("transport: unexpected message %T", m)
	}
	return nil
}

// Stop implements [kernel.Behavior].
func (a *Actor) Stop(*kernel.Context[machine.ToTransport]) {
	if a.timer != nil {
		a.timer.Stop()
	}
}

// arm sets the timer of the present stage.
func (a *Actor) arm(c *kernel.Context[machine.ToTransport]) {
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
	if stage, end, ok := a.Present().stageTimer(); ok {
		a.timer = c.After(end.Sub(c.Now()), stageOver{stage})
	}
}

// write queues a line and reports whether the caller has to run the writer. The routing
// writes when it is connected. A transport actor that was down while one process died and
// the next was asked for still has lines for the first: they come before Launch.
func (k *Link) write(line []byte, as machine.Class) bool {
	if !k.up.Load() && !k.hasRun() {
		return false
	}
	return k.writer.Write(line, as)
}

func (k *Link) hasRun() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.writer != nil
}
