package jobs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/supervisor"
)

// helperEnv makes the test's program another one.
const helperEnv = "TROUPE_REDTEAM2_HELPER"

func TestMain(m *testing.M) {
	if name := os.Getenv(helperEnv); name != "" {
		helpers[name]()
		return
	}
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(filepath.Dir(built))
	}
	os.Exit(code)
}

var built string // the command troupe; the tests that need it run one after another

// troupe builds the command.
func troupe(t *testing.T) string {
	t.Helper()
	if built == "" {
		dir, err := os.MkdirTemp("", "redteam2-")
		require.NoError(t, err)
		name := filepath.Join(dir, "troupe")
		out, err := exec.Command("go", "build", "-o", name, "github.com/agent-troupe/troupe/cmd/troupe").CombinedOutput()
		require.NoError(t, err, "%s", out)
		built = name
	}
	return built
}

// steers is the part of a text that would steer a terminal.
func steers(out string) string {
	for _, bad := range []string{"\x1b]", "\x1b[2J", "\u009b", "\u202e"} {
		if i := strings.Index(out, bad); i >= 0 {
			return fmt.Sprintf("%.120q", out[max(i-40, 0):])
		}
	}
	return ""
}

var helpers = map[string]func(){}

// write writes a file, and makes its directory.
func write(t *testing.T, name, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	c := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
	out, err := c.CombinedOutput()
	require.NoError(t, err, "git %v: %s", args, out)
	return string(out)
}

// repository is one with a commit.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.txt"), "one\n")
	gitIn(t, dir, "init", "-q")
	gitIn(t, dir, "add", ".")
	gitIn(t, dir, "commit", "-qm", "one")
	return dir
}

// acting is an agent that does act in its turn, and says done. act stands for the tools
// that the agent's rules, or its container, let it use: it touches what it could reach there.
func acting(act func() error, more ...scripted.Step) *sdk.Options {
	steps := append(scripted.Steps{
		&scripted.ToolUse{Name: "Write", Input: map[string]any{"file_path": "x"}, Gate: "allow", Effect: "x"},
	}, more...)
	steps = append(steps, scripted.Text("done"))
	return &sdk.Options{Backend: scripted.New(
		scripted.WithScript(&scripted.Script{Transcript: true, Default: steps}),
		scripted.WithHistory(&scripted.MemoryHistory{}),
		scripted.WithEffect(func(string, string) error { return act() }),
	), AllowedTools: []string{"Write"}}
}

// saying is an agent that answers with a text.
func saying(text string) *sdk.Options {
	return &sdk.Options{Backend: scripted.New(
		scripted.WithScript(&scripted.Script{Transcript: true, Default: scripted.Steps{scripted.Text(text)}}),
		scripted.WithHistory(&scripted.MemoryHistory{}),
	)}
}

// collect runs a job to its end.
func collect(t *testing.T, j fleet.Job) map[string]fleet.TaskResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	j.Backoff = supervisor.Backoff{Initial: time.Millisecond, Max: time.Millisecond}
	all := map[string]fleet.TaskResult{}
	for r, err := range fleet.Run(ctx, j) {
		require.NoError(t, err)
		all[r.ID] = r
	}
	return all
}

func readAll(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(b)
}
