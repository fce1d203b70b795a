package transport

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/actors/ledger"
	"github.com/agent-troupe/troupe/internal/kernel"
)

// saying is a process that has written something.
type saying struct {
	memoryProcess
	out io.Reader
}

func (s *saying) Stdout() io.Reader { return s.out }

// A session may be idle for long behind the answer to initialize, which is
// large, and behind a result.
func TestWhatMayBeTheLastLineForLongKeepsNoBuffer(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 40<<10)
	for line, free := range map[string]bool{
		`{"type":"control_response","response":{"subtype":"success","request_id":"1","response":{"x":"` + big + `"}}}`: true,
		`{"type":"result","subtype":"success","result":"` + big + `"}`:                                                 true,
		`{"type":"assistant","message":{"x":"` + big + `"}}`:                                                           false,
	} {
		clock := kernel.NewClock(nil)
		k := NewLink(LinkConfig{
			Clock: clock, Exec: kernel.GoExecutor{},
			Ledger: ledger.New(ledger.Config{Clock: clock, Exec: kernel.GoExecutor{}}),
		})
		k.writer, k.proc = &writer{}, &saying{out: strings.NewReader(line + "\n")}
		p := newPump(k)
		for p.read() {
			if p.lines.Pending() == 0 {
				break
			}
		}
		assert.Equal(t, free, len(p.lines.Buffer()) <= 1<<10, line[:24])
	}
}
