package command

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/sdk"
)

// While something moves on stderr, whatever the command says is written above it, also what a
// signal or the socket says.
func TestNotesAboveTheBar(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.stderrTTY = true
	c := newConsole(w.process)
	var above bytes.Buffer
	moving := true
	draw := func(text []byte) bool { above.Write(text); return moving }
	c.draw(draw)
	p := newProgress(c, false, 1, "out")
	p.event(fleet.Event{Kind: fleet.EventStopped, Detail: "drained"})
	c.note("the running tasks end\x1b[2J")
	assert.Equal(t, "nothing more starts (drained)\ntroupe: the running tasks end\\x1b[2J\n", above.String())
	c.toMargin()
	assert.Equal(t, "\r", w.err.String(), "the ^C is written over")
	c.draw(nil)
	c.toMargin()
	c.draw(draw)
	moving = false // the bar has ended
	c.note("killing the agents")
	assert.Equal(t, "\rtroupe: killing the agents\n", w.err.String())
}

// The last line on a terminal has two significant digits of the cost, and the time of the turn
// only if there was one.
func TestTheLastLine(t *testing.T) {
	t.Parallel()
	r := &sdk.ResultMessage{TotalCostUSD: 0.000123}
	r.DurationMS, r.SessionID = 1234, "id"
	assert.Equal(t, "claude · 1.2s · $0.00012 · --resume id", summary(r, "claude", false))
	assert.Equal(t, "claude · $0.00012 · --resume id", summary(r, "claude", true))
}
