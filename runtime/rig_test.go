package runtime_test

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/internal/world"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(leasesEnv); dir != "" {
		holdALease(dir)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(os.Exit))
}

// rig is a world with the vocabulary of these tests.
type rig struct{ *world.World }

// inSim is a rig in virtual time.
func inSim(t *testing.T, seed uint64, change ...world.Change) *rig {
	t.Helper()
	return &rig{world.New(t, seed, change...)}
}

// inProduction is a rig on goroutines and the wall clock.
func inProduction(t *testing.T) *rig {
	t.Helper()
	return &rig{world.Production(t)}
}

// inBoth runs a test in production and for some seeds in virtual time.
func inBoth(t *testing.T, test func(t *testing.T, w *rig)) {
	t.Helper()
	t.Run("production", func(t *testing.T) { t.Parallel(); test(t, inProduction(t)) })
	t.Run("simulation", func(t *testing.T) {
		t.Parallel()
		for seed := range world.Seeds(t, 10, 500) {
			test(t, inSim(t, seed))
		}
	})
}

// turns is a script without misbehaviour.
func turns(all ...scripted.Steps) *scripted.Script {
	s := &scripted.Script{}
	for _, steps := range all {
		s.Turns = append(s.Turns, scripted.Turn{Steps: steps})
	}
	return s
}

func (w *rig) spec(s *scripted.Script) runtime.Spec {
	return runtime.Spec{Dialect: claude.New(), Program: w.Agent(s)}
}

func (w *rig) open(spec runtime.Spec) *runtime.Session {
	w.Helper()
	s, err := w.Open(context.Background(), spec)
	require.NoError(w, err)
	return s
}

func (w *rig) send(s *runtime.Session, prompt string) *runtime.Turn {
	w.Helper()
	turn, err := s.Send(context.Background(), text(prompt))
	require.NoError(w, err)
	return turn
}

// gate is a tool call that asks for permission and has an effect.
func gate() *scripted.ToolUse {
	return &scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "date"}, Gate: agent.GateAsk, Result: "now", Effect: "effect"}
}

// allow lets every tool run.
func allow(context.Context, *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
	return protocol.PermissionResult{Behavior: protocol.BehaviorAllow}, nil
}

var never = make(chan struct{})
