package runtime_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/kernel"
)

// spy is a test that notes its failures instead of failing.
type spy struct {
	testing.TB
	errors []string
}

func (s *spy) Errorf(format string, args ...any) {
	s.errors = append(s.errors, fmt.Sprintf(format, args...))
}
func (s *spy) Failed() bool               { return len(s.errors) > 0 }
func (s *spy) Logf(f string, args ...any) { s.Errorf(f, args...) }

func gatedScript() *scripted.Script {
	return &scripted.Script{Turns: []scripted.Turn{{Steps: scripted.Steps{
		&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "date"}, Gate: agent.GateAsk, Result: "now", Effect: "effect"}, scripted.Text("done"),
	}}}}
}

func TestAWorldKeepsItsHistory(t *testing.T) {
	t.Parallel()
	inBothWorlds(t, 2, func(t *testing.T, w *world) {
		require.NoError(t, w.Play(context.Background(), w.Gated(gatedScript()), "go"))
		assert.Empty(t, w.TurnErrors())
		assert.NotEmpty(t, w.Saw())
		w.Lossless("a calm session")
		w.FailClosed("a calm session")
		living, ever := w.Agents()
		assert.Zero(t, living)
		assert.Equal(t, 1, ever)
		assert.Len(t, w.Effects(), 1)
		if w.Sched != nil {
			assert.NotEmpty(t, w.Handled())
			assert.Contains(t, w.Trace(), "effect ")
		}
	})
}

func TestAKillIsInTheHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, killingWhen(func(n int, _ string, at kernel.Moment) bool { return n == 5 && at == kernel.BeforeMessage }))
	require.NoError(t, w.Play(context.Background(), w.Gated(gatedScript()), "go"))
	assert.Len(t, w.Crashes(), 1)
	assert.Contains(t, w.Trace(), "crash ")
}

// Leftovers of a run fail its test, with the seed.
func TestWhatIsLeftIsReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		leave func(*world)
		want  string
	}{
		"a timer": {func(w *world) { w.Clock().AfterFunc(time.Hour, func() {}) }, "seed 7: a timer outlives the runtime by 1h0m0s"},
		"a task": {func(w *world) {
			w.Executor().Go(func() { _ = w.Executor().Await(context.Background(), make(chan struct{})) })
		}, "seed 7: 1 tasks left waiting"},
		"a message that is lost": {func(w *world) { w.Errorf("lost: %d", 3) }, "seed 7: lost: 3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &spy{TB: t}
			w := newWorld(s, 7)
			c.leave(w)
			w.Finish()
			assert.Equal(t, []string{c.want, "the failure is that of seed 7"}, s.errors)
		})
	}
}

// An assertion on the test itself says nothing of a seed: the world does.
func TestAFailureElsewhereNamesTheSeed(t *testing.T) {
	t.Parallel()
	s := &spy{TB: t}
	w := newWorld(s, 9)
	s.Errorf("expected 1")
	w.Finish()
	assert.Equal(t, []string{"expected 1", "the failure is that of seed 9"}, s.errors)
}
