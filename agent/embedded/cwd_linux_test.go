package embedded_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/model/modeltest"
	"github.com/agent-troupe/troupe/sdk"
)

// A policy of the host decides with the directory in which a call begins, also after cd.
func TestAPolicyFollowsTheShell(t *testing.T) {
	t.Parallel()
	use := func(name string, in map[string]any) *modeltest.Answer { return modeltest.Say(modeltest.Call(name, in)) }
	s := script(t,
		use("Bash", map[string]any{"command": "cat sub/secrets/key"}),
		use("Bash", map[string]any{"command": "cd sub"}),
		use("Bash", map[string]any{"command": "cat secrets/key"}),
		use("Read", map[string]any{"file_path": "secrets/key"}),
		use("Write", map[string]any{"file_path": "secrets/new", "content": "written"}),
		use("Bash", map[string]any{"command": "cat ../a.txt"}),
		use("Bash", map[string]any{"command": "cd .."}),
		modeltest.Say(subBash("cd sub"), subBash("cat secrets/key"), modeltest.Call("Read", map[string]any{"file_path": "secrets/key"})),
		modeltest.Say(modeltest.Text("done")))
	for path, text := range map[string]string{"sub/secrets/key": "SECRET", "a.txt": "not hidden"} {
		at := filepath.Join(s.o.Cwd, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o700))
		require.NoError(t, os.WriteFile(at, []byte(text), 0o600))
	}
	s.o.PermissionMode, s.o.AllowDangerouslySkipPermissions = "default", false
	s.o.Policy = &sdk.Policy{
		Allow: []string{"Bash(cat:*)", "Bash(cd:*)", "Read(./**)", "Edit(./**)"},
		Deny:  []string{"Read(./sub/secrets/**)", "Edit(./sub/secrets/**)"},
	}
	s.open(t)
	for i, r := range s.requests(t, 9)[1:] {
		for _, b := range r.Results() {
			assert.NotContains(t, b.Text+string(b.Content), "SECRET", i)
			if i == 5 {
				assert.Contains(t, b.Text+string(b.Content), "not hidden")
			}
		}
	}
	assert.NoFileExists(t, filepath.Join(s.o.Cwd, "sub/secrets/new"))
}

// Hooks get the directory of the lane: a sub-agent's is its working tree.
func TestHooksGetTheDirectoryOfACall(t *testing.T) {
	t.Parallel()
	m, o := teamed(t, map[string][]*modeltest.Answer{
		"main": answers(modeltest.Say(subBash("mkdir sub; cd sub")), modeltest.Say(agentCall("job", "isolation", "worktree")), modeltest.Say(subBash("echo main")), reports("done")),
		"job":  answers(modeltest.Say(subBash("cd /; echo job; touch kept")), modeltest.Say(subBash("echo again")), reports("ok")),
	})
	require.NoError(t, os.WriteFile(filepath.Join(o.Cwd, "a.txt"), []byte("one\n"), 0o600))
	gitIn(t, o.Cwd, "init", "-q")
	gitIn(t, o.Cwd, "add", ".")
	gitIn(t, o.Cwd, "commit", "-qm", "first")
	var mu sync.Mutex
	var dirs []string
	o.Hooks = []sdk.Hook{sdk.OnPreToolUse(func(_ context.Context, in *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		mu.Lock()
		defer mu.Unlock()
		dirs = append(dirs, in.Cwd)
		return sdk.PreToolUseOutput{}, nil
	}, sdk.Match("Bash"))}
	session := m.open(t, o)
	require.False(t, m.ask(t, session, "main").IsError)
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, dirs, 4)
	assert.Equal(t, o.Cwd, dirs[0])
	assert.Equal(t, filepath.Join(o.Cwd, ".claude/worktrees"), filepath.Dir(dirs[1]))
	assert.Equal(t, dirs[1], dirs[2])
	assert.Equal(t, filepath.Join(o.Cwd, "sub"), dirs[3])
}

// A call waits for a command that may change the directory, so its gates see the one in which it begins.
func TestACallBehindACommandThatChangesTheDirectory(t *testing.T) {
	t.Parallel()
	s := script(t, modeltest.Say(subBash("cd sub"), subBash("pwd")), modeltest.Say(modeltest.Text("done")))
	require.NoError(t, os.Mkdir(filepath.Join(s.o.Cwd, "sub"), 0o700))
	moved, seen := make(chan struct{}), make(chan string, 1)
	s.o.Hooks = []sdk.Hook{
		sdk.OnPreToolUse(func(_ context.Context, in *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
			if strings.Contains(string(in.ToolInput), "pwd") {
				<-moved
				seen <- in.Cwd
			}
			return sdk.PreToolUseOutput{}, nil
		}),
		sdk.OnPostToolUse(func(_ context.Context, in *sdk.PostToolUseInput) (sdk.PostToolUseOutput, error) {
			if strings.Contains(string(in.ToolInput), "cd sub") {
				close(moved)
			}
			return sdk.PostToolUseOutput{}, nil
		}),
	}
	s.open(t)
	requests := s.requests(t, 2)
	assert.Equal(t, filepath.Join(s.o.Cwd, "sub"), <-seen)
	assert.Contains(t, requests[1].Results()[1].Text+string(requests[1].Results()[1].Content), "/sub")
}
