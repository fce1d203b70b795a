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

var ends = map[string]syscall.Signal{"drained": syscall.SIGTERM, "killed": syscall.SIGKILL}

// A worker ends in the second turn of a task, in order or not. With --move another worker, on another machine,
// continues the session in the workspace: the first turn is not made again.
func TestATaskMovesToAnotherWorker(t *testing.T) {
	t.Parallel()
	for name, signal := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMoving(t, "embedded")
			s, err := embedded.Start(embedded.Config{Name: "s", Dir: t.TempDir(), Host: "127.0.0.1"})
			require.NoError(t, err)
			t.Cleanup(s.Stop)
			m.url = s.URL()
			m.play(t, signal)
		})
	}
}

// Workers need no more rights than those of deploy/accounts.conf to move tasks.
func TestATaskMovesWithRoles(t *testing.T) {
	t.Parallel()
	for name, signal := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMoving(t, "embedded")
			url, roles := withRoles(t)
			m.url, m.submitter, m.worker = url, []string{"--creds", roles.submitter}, []string{"--creds", roles.worker}
			require.Zero(t, start(t, append([]string{"jobs", "--nats", url}, m.submitter...)...).exit(t), "it makes the directories")
			m.play(t, signal)
		})
	}
}

// moving is a job of one task with two turns. In the first one the agent makes a commit and files; in the second
// one, the first answer of the model never comes.
type moving struct {
	*real
	submitter, worker []string      // flags of the programs
	second            chan struct{} // the model was asked in the second turn
	between           func()        // the first worker has ended
	heard             atomic.Value  // what the model was sent when the second turn was continued: modelapi.Request
}

func newMoving(t *testing.T, agent string) *moving {
	t.Helper()
	m := &moving{real: newReal(t, agent), second: make(chan struct{}), between: func() {}}
	var asked atomic.Int32
	m.model.Script("first",
		func(modelapi.Call) modelapi.Reply {
			command := fmt.Sprintf("echo run >> %s/first; echo made >made.txt; echo changed >a.txt; git config user.name t; git config user.email t@example.com; git commit -qam turn; echo more >>a.txt", m.dir)
			return modelapi.Reply{Blocks: []modelapi.Block{modelapi.ToolUse("Bash", map[string]any{"command": command, "description": "work"})}}
		},
		func(modelapi.Call) modelapi.Reply {
			return modelapi.Reply{Blocks: []modelapi.Block{modelapi.Text("the first is made")}}
		})
	m.model.Script("second", func(c modelapi.Call) modelapi.Reply {
		if asked.Add(1) == 1 {
			close(m.second)
			return modelapi.Reply{Blocks: []modelapi.Block{modelapi.Text("too late")}, Hang: true}
		}
		m.heard.Store(c.Request)
		return modelapi.Reply{Blocks: []modelapi.Block{modelapi.Text("two")}}
	})
	return m
}

// play ends the first worker with the signal while it is in the second turn, and has another one continue.
func (m *moving) play(t *testing.T, signal syscall.Signal) {
	t.Helper()
	repo := filepath.Join(m.dir, "repo")
	git := exec.Command("sh", "-ec", "git init -q repo; cd repo; echo a >a.txt; git add .; git -c user.name=t -c user.email=t@example.com commit -qm one")
	git.Dir = m.dir
	text, err := git.CombinedOutput()
	require.NoError(t, err, "%s", text)
	file := filepath.Join(m.dir, "tasks.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(`{"id":"t","prompt":"do [[scn:first]]","turns":["and [[scn:second]]"]}`), 0o600))

	a := m.hire("a", append([]string{"--nats", m.url, "-j", "1", "--grace", "100ms"}, m.worker...)...)
	a.await(t, "worker a in")
	out := filepath.Join(m.dir, "out")
	args := append([]string{"batch", file, "--nats", m.url, "--id", "m", "--move", "--lease", "5s", "--out", out, "--workspace", "worktree", "--cwd", repo}, m.agent...)
	batch := start(t, append(args, m.submitter...)...)
	select {
	case <-m.second:
	case <-batch.over:
		require.Fail(t, "the job is over before the second turn", "%s", batch)
	}
	require.NoError(t, a.Process.Signal(signal))
	a.exit(t)
	m.between()
	m.hire("b", append([]string{"--nats", m.url, "-j", "1", "--affinity", "1s"}, m.worker...)...).await(t, "worker b in")
	assert.Zero(t, batch.exit(t))
	got := results(t, out)["t"]
	assert.Equal(t, "two", got.Text)
	require.Len(t, got.Attempts, 1)
	assert.Equal(t, fleet.Mode("moved"), got.Attempts[0].Mode)
	assert.Contains(t, got.Attempts[0].Note, "after 1 of its turns")
	runs, err := os.ReadFile(filepath.Join(m.dir, "first"))
	require.NoError(t, err)
	assert.Equal(t, "run\n", string(runs))
	look := exec.Command("sh", "-ec", "cat made.txt a.txt; git log --format=%s; git status --porcelain")
	look.Dir = got.Workspace
	text, err = look.CombinedOutput()
	require.NoError(t, err, "%s", text)
	assert.Equal(t, []string{"made", "changed", "more", "turn", "one", " M a.txt", "?? made.txt"}, strings.Split(strings.TrimRight(string(text), "\n"), "\n"))
	assert.True(t, strings.HasPrefix(got.Workspace, filepath.Join(m.dir, "b")), got.Workspace)
	m.remembers(t, got.Workspace)
}

// remembers checks the conversation that the model was sent when the second turn was continued: that of the first
// one, with its command and the answer, and the place where the agent is now.
func (m *moving) remembers(t *testing.T, workspace string) {
	t.Helper()
	sent, ok := m.heard.Load().(modelapi.Request)
	require.True(t, ok)
	said := map[string]string{}
	for _, message := range sent.Messages {
		for _, c := range message.Content {
			said[message.Role+" "+c.Type] += c.Text + "\n"
		}
	}
	assert.Contains(t, said["user text"], "[[scn:first]]")
	assert.Contains(t, said, "assistant tool_use")
	assert.Contains(t, said["assistant text"], "the first is made")
	assert.Contains(t, said["user text"], "[[scn:second]]")
	assert.Contains(t, said["user text"], "You are on another machine now")
	assert.Contains(t, said["user text"], workspace)
}
