package runtime

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/breaker"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/session"
)

// waits is an asker that counts its answers.
type waits struct{ answers int }

func (w *waits) granted(uint64)                    { w.answers++ }
func (w *waits) held(breakerKey, string)           {}
func (w *waits) refused(*session.BreakerOpenError) { w.answers++ }

// A runtime that sees 100,000 programs fail keeps those that were used last, and those that
// a start waits for.
func TestBreakersAreBounded(t *testing.T) {
	t.Parallel()
	s := sim.New(1)
	defer s.Close()
	b := newBreakers(Breakers{}, kernel.NewSystem(s.Config()), func(session.Event) {})
	program := func(n int) breakerKey { return breakerKey{kind: session.BreakerAgent, name: strconv.Itoa(n)} }
	failed := breaker.Done{Failure: "exit status 1"}

	var waiting waits
	for range defaultFailures {
		b.step(program(0), failed)
	}
	b.ask(program(0), breaker.Ask{Again: true, Patient: true}, &waiting)
	most := 0
	for n := 1; n <= 100_000; n++ {
		b.step(program(n), failed)
		most = max(most, len(b.all))
	}
	assert.LessOrEqual(t, most, 2*maxKnowing)
	require.Contains(t, b.all, program(0))
	assert.Equal(t, session.BreakerOpen, b.all[program(0)].Phase)
	assert.Zero(t, waiting.answers)
	assert.Equal(t, 1, b.all[program(100_000)].Failures)
	assert.NotContains(t, b.all, program(1))
}
