package transport

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/actors/ledger"
	"github.com/agent-troupe/troupe/internal/kernel"
)

// saying is a process that has written something, and no announcer.
type saying struct {
	Process
	out io.Reader
}

func (s saying) Stdout() io.Reader { return s.out }

// The answer to initialize is large, and what comes next may come late.
func TestNoLargeBufferIsHeldForAnIdleAgent(t *testing.T) {
	t.Parallel()
	clock := kernel.NewClock(nil)
	k := NewLink(LinkConfig{
		Clock: clock, Exec: kernel.GoExecutor{},
		Ledger: ledger.New(ledger.Config{Clock: clock, Exec: kernel.GoExecutor{}}),
	})
	k.writer, k.proc = &writer{}, saying{out: strings.NewReader(
		`{"type":"control_response","response":{"subtype":"success","request_id":"1","response":{"x":"` + strings.Repeat("x", 20<<10) + `"}}}` + "\n")}
	p := newPump(k)
	for p.read() && p.lines.Pending() > 0 {
	}
	assert.Greater(t, len(p.lines.Buffer()), 4<<10, "more may come at once")
	assert.False(t, p.rests(), "it waits by itself")
	assert.LessOrEqual(t, len(p.lines.Buffer()), 1<<10)
}
