package osproc

import (
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
)

// Bounds of the interval at which exits are polled where nothing announces
// them.
const (
	pollMin = 5 * time.Millisecond
	pollMax = 100 * time.Millisecond
)

// pollExit calls p.exit when the leader has exited, by asking on the clock.
func pollExit(clk kernel.Clock, p *Process) {
	var ask func()
	wait := pollMin
	ask = func() {
		p.mu.Lock()
		gone := p.leader.exited(p.pid)
		p.mu.Unlock()
		if gone {
			p.exit()
			return
		}
		wait = min(2*wait, pollMax) // before the timer is set: the next call reads it
		clk.AfterFunc(wait, ask)
	}
	clk.AfterFunc(wait, ask)
}
