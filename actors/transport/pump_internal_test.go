package transport

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/actors/user"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// saying is a process that has written something, and no announcer.
type saying struct {
	session.Process
	out io.Reader
}

func (s saying) Stdout() io.Reader { return s.out }

// pumped is a pump that has read a line.
func pumped(b *user.Budget, line string) *pump {
	clock := kernel.NewClock(nil)
	k := NewLink(LinkConfig{
		Clock: clock, Exec: kernel.GoExecutor{},
		Budget: b, Emit: func(session.Event) {}, Router: func(*kernel.Worker, machine.Input) {},
		Room: func() <-chan struct{} { return nil },
	})
	k.writer, k.proc = &writer{}, saying{out: strings.NewReader(line + "\n")}
	p := newPump(k)
	for p.read() && p.lines.Pending() > 0 {
	}
	return p
}

// The answer to initialize is large, and what comes next may come late.
func TestNoLargeBufferIsHeldForAnIdleAgent(t *testing.T) {
	t.Parallel()
	p := pumped(nil, `{"type":"control_response","response":{"subtype":"success","request_id":"1","response":{"x":"`+strings.Repeat("x", 20<<10)+`"}}}`)
	assert.Greater(t, len(p.lines.Buffer()), 4<<10, "more may come at once")
	assert.False(t, p.rests(), "it waits by itself")
	assert.LessOrEqual(t, len(p.lines.Buffer()), 1<<10)
}

// Other sessions may wait for what a line was granted that was no message.
func TestAnIdleReaderKeepsNothingOfTheBudget(t *testing.T) {
	t.Parallel()
	budget := user.NewBudget(0)
	p := pumped(budget, strings.Repeat("noise", 1<<20))
	assert.Positive(t, budget.Used(), "it grew")
	p.rests()
	assert.Zero(t, budget.Used())
}
