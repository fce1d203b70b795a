package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/contrib/nats/embedded"
	"github.com/agent-troupe/troupe/fleet"
)

// A worker ends in the second turn of a task, in order or not. With --move another worker, on another machine,
// continues the session in the workspace: the first turn is not made again.
func TestATaskMovesToAnotherWorker(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{"drained": syscall.SIGTERM, "killed": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReal(t, "embedded")
			var asked atomic.Int32
			second := make(chan struct{})
			r.model.Script("first",
				func(modelapi.Call) modelapi.Reply {
					command := fmt.Sprintf("echo run >> %s/first; echo made >made.txt; echo changed >a.txt; git config user.name t; git config user.email t@example.com; git commit -qam turn; echo more >>a.txt", r.dir)
					return modelapi.Reply{Blocks: []modelapi.Block{modelapi.ToolUse("Bash", map[string]any{"command": command, "description": "work"})}}
				},
				func(modelapi.Call) modelapi.Reply {
					return modelapi.Reply{Blocks: []modelapi.Block{modelapi.Text("one")}}
				})
			r.model.Script("second",
				func(modelapi.Call) modelapi.Reply {
					if asked.Add(1) == 1 {
						close(second)
						return modelapi.Reply{Blocks: []modelapi.Block{modelapi.Text("too late")}, Hang: true}
					}
					return modelapi.Reply{Blocks: []modelapi.Block{modelapi.Text("two")}}
				})
			repo := filepath.Join(r.dir, "repo")
			git := exec.Command("sh", "-ec", "git init -q repo; cd repo; echo a >a.txt; git add .; git -c user.name=t -c user.email=t@example.com commit -qm one")
			git.Dir = r.dir
			text, err := git.CombinedOutput()
			require.NoError(t, err, "%s", text)
			file := filepath.Join(r.dir, "tasks.jsonl")
			require.NoError(t, os.WriteFile(file, []byte(`{"id":"t","prompt":"do [[scn:first]]","turns":["and [[scn:second]]"]}`), 0o600))

			s, err := embedded.Start(embedded.Config{Name: "s", Dir: t.TempDir(), Host: "127.0.0.1"})
			require.NoError(t, err)
			t.Cleanup(s.Stop)
			r.url = s.URL()
			a := r.hire("a", "--nats", r.url, "-j", "1", "--grace", "100ms")
			a.await(t, "worker a in")
			out := filepath.Join(r.dir, "out")
			batch := start(t, append([]string{"batch", file, "--nats", r.url, "--id", "m", "--move", "--lease", "2s", "--out", out, "--workspace", "worktree", "--cwd", repo}, r.agent...)...)
			<-second
			require.NoError(t, a.Process.Signal(signal))
			a.exit(t)
			r.hire("b", "--nats", r.url, "-j", "1", "--affinity", "1s").await(t, "worker b in")
			assert.Zero(t, batch.exit(t))
			got := results(t, out)["t"]
			assert.Equal(t, "two", got.Text)
			require.Len(t, got.Attempts, 1)
			assert.Equal(t, fleet.Mode("moved"), got.Attempts[0].Mode)
			assert.Contains(t, got.Attempts[0].Note, "after 1 of its turns")
			runs, err := os.ReadFile(filepath.Join(r.dir, "first"))
			require.NoError(t, err)
			assert.Equal(t, "run\n", string(runs))
			look := exec.Command("sh", "-ec", "cat made.txt a.txt; git log --format=%s; git status --porcelain")
			look.Dir = got.Workspace
			text, err = look.CombinedOutput()
			require.NoError(t, err, "%s", text)
			assert.Equal(t, []string{"made", "changed", "more", "turn", "one", " M a.txt", "?? made.txt"}, strings.Split(strings.TrimRight(string(text), "\n"), "\n"))
			assert.True(t, strings.HasPrefix(got.Workspace, filepath.Join(r.dir, "b")), got.Workspace)
		})
	}
}
