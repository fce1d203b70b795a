package transport

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/actors/user"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
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
	p := pumping(b, strings.NewReader(line+"\n"))
	for p.read() && p.lines.Pending() > 0 {
	}
	return p
}

// pumping is a pump that reads from out.
func pumping(b *user.Budget, out io.Reader) *pump {
	clock := kernel.NewClock(nil)
	k := NewLink(LinkConfig{
		Clock: clock, Exec: kernel.GoExecutor{},
		Budget: b, Emit: func(session.Event) {}, Router: func(*kernel.Worker, machine.Input) {},
		Room: func() <-chan struct{} { return nil }, Idle: func() {},
	})
	k.writer, k.proc = &writer{}, saying{out: out}
	return newPump(k)
}

// reads are what single calls of Read return.
type reads struct{ left []string }

func (r *reads) Read(b []byte) (int, error) {
	if len(r.left) == 0 {
		return 0, io.EOF
	}
	n := copy(b, r.left[0])
	if r.left[0] = r.left[0][n:]; r.left[0] == "" {
		r.left = r.left[1:]
	}
	return n, nil
}

// What was read stays as it was, whatever is read after it: a request is copied, and the
// memory that it was read into is used again.
func TestFramesDoNotChange(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		line := func(i int) string {
			form := rapid.SampledFrom([]string{
				`{"type":"control_request","request_id":"%d","request":{"subtype":"hook_callback","pad":"%s"}}`,
				`{"type":"control_request","request_id":"%d","request":{"subtype":"hook_callback","pad":"%s"}}`,
				`{"type":"control_response","response":{"subtype":"success","request_id":"%d","response":{"pad":"%s"}}}`,
				`{"type":"assistant","n":%d,"pad":"%s"}`,
				`{"type":"keep_alive","n":%d,"pad":"%s"}`,
			}).Draw(t, "form")
			return fmt.Sprintf(form, i, strings.Repeat("x", rapid.SampledFrom([]int{0, 5, 100, 600, 3000}).Draw(t, "pad")))
		}
		var lines []string
		var in reads
		for range rapid.IntRange(1, 30).Draw(t, "reads") {
			part := ""
			for range rapid.IntRange(1, 3).Draw(t, "lines") {
				lines = append(lines, line(len(lines)))
				part += lines[len(lines)-1] + "\n"
			}
			if cut := rapid.IntRange(0, 3*len(part)).Draw(t, "cut"); cut < len(part) {
				in.left, part = append(in.left, part[:cut]), part[cut:]
			}
			in.left = append(in.left, part)
		}
		in.left = slices.DeleteFunc(in.left, func(s string) bool { return s == "" })
		p := pumping(nil, &in)
		var frames []protocol.Frame
		for more := true; more; {
			more = p.read()
			frames, p.frames = append(frames, p.frames...), nil
		}
		require.Len(t, frames, len(lines))
		for i := range frames {
			require.Equal(t, lines[i], string(frames[i].Raw))
		}
	})
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
