package link

import (
	"fmt"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/machine"
)

// Actor drives one link. A new incarnation goes on where the last one was.
type Actor struct {
	Link *Link

	timer kernel.Timer
}

// launched says that process gen is up. From: the link.
type launched struct{ gen int }

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
	switch m := m.(type) {
	case machine.Write:
		if a.Link.write(m.Line, m.As) {
			c.Go(func() func(*kernel.Worker) { a.Link.writer.run(); return nil })
		}
	case machine.Works:
		a.Link.works.Store(m.On)
	case machine.Pause:
		a.Link.pause()
	case machine.Resume:
		a.Link.resume()
	case machine.Launch:
		a.Link.Launch()
	case machine.Climb:
		a.Link.want(m.Stage, m.Why)
		a.Link.advance()
		a.arm(c)
	case launched:
		a.Link.advance()
		a.arm(c)
	case stageOver:
		a.Link.stageOver(m.stage, c.Now())
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
	if stage, end, ok := a.Link.stageTimer(); ok {
		a.timer = c.After(end.Sub(c.Now()), stageOver{stage})
	}
}

// write queues a line and reports whether the caller has to run the writer.
func (k *Link) write(line []byte, as machine.Class) bool {
	return k.writer.Write(line, as) // the routing writes when it is connected
}
