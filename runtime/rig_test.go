package runtime_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(leasesEnv); dir != "" {
		holdALease(dir)
	}
	runtime.ServeGuard() // the hosts of TestGuard are this program, and their guards, too
	code := m.Run()
	if err := leaked(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	_ = os.RemoveAll(scriptedDir)
	os.Exit(code)
}

// leaked returns an error about goroutines that do not end. goleak gives them half a second,
// which is not enough for one that asks a session that has ended, or that has read much.
func leaked(options ...goleak.Option) (err error) {
	for range 60 {
		if err = goleak.Find(options...); err == nil {
			break
		}
	}
	return err
}

// scriptedDir is where the scripted agent is; "" does not exist.
var scriptedDir string

// scriptedBinary builds the scripted agent once for all tests of the package.
var scriptedBinary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "troupe-scriptedagent-")
	if err != nil {
		return "", err
	}
	scriptedDir = dir
	bin := filepath.Join(dir, "scriptedagent")
	out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", bin, "github.com/agent-troupe/troupe/agent/scripted/scriptedagent").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the scripted agent: %w: %s", err, out)
	}
	return bin, nil
})

// rig is a world with the vocabulary of these tests.
type rig struct{ *world }

// inSim is a rig in virtual time.
func inSim(t *testing.T, seed uint64, change ...change) *rig {
	t.Helper()
	return &rig{newWorld(t, seed, change...)}
}

// inProduction is a rig on goroutines and the wall clock.
func inProduction(t *testing.T) *rig {
	t.Helper()
	return &rig{production(t)}
}

// inBoth runs a test in production and for some seeds in virtual time.
func inBoth(t *testing.T, test func(t *testing.T, w *rig)) {
	t.Helper()
	t.Run("production", func(t *testing.T) { t.Parallel(); test(t, inProduction(t)) })
	t.Run("simulation", func(t *testing.T) {
		t.Parallel()
		for seed := range sim.Seeds(t, 10, 500) {
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
