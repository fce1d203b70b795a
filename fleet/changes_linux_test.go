package fleet_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/sdk"
)

func shell(t *testing.T, dir, line string) {
	t.Helper()
	c := exec.Command("sh", "-ec", line)
	c.Dir = dir
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

const commit = "git add -A && git -c user.name=t -c user.email=t@example.com commit -qm two"

// A success without a change is suspicious. What was there before the task is no change; a
// commit is one.
func TestExpectChange(t *testing.T) {
	t.Parallel()
	const nothing = "true"
	for name, c := range map[string]struct {
		kind   fleet.WorkspaceKind
		repo   bool
		before string // in the directory that the job begins with
		setup  string
		work   string // of the agent
		status fleet.Status
	}{
		"as is, nothing":          {repo: true, work: nothing, status: fleet.Suspicious},
		"as is, dirty before":     {repo: true, before: "echo x >>a.txt; echo y >b.txt", work: nothing, status: fleet.Suspicious},
		"as is, changed":          {repo: true, work: "echo x >>a.txt", status: fleet.Accepted},
		"as is, changed again":    {repo: true, before: "echo x >>a.txt", work: "echo y >>a.txt", status: fleet.Accepted},
		"as is, new again":        {repo: true, before: "mkdir d; echo x >d/b.txt", work: "echo y >d/b.txt", status: fleet.Accepted},
		"as is, taken back":       {repo: true, before: "echo x >>a.txt", work: "git checkout -q a.txt", status: fleet.Accepted},
		"as is, removed":          {repo: true, work: "rm a.txt", status: fleet.Accepted},
		"as is, another link":     {repo: true, before: "ln -s a.txt l", work: "ln -sfn b.txt l", status: fleet.Accepted},
		"as is, only staged":      {repo: true, before: "echo x >b.txt", work: "git add -A", status: fleet.Suspicious},
		"as is, committed":        {repo: true, work: "echo x >>a.txt;" + commit, status: fleet.Accepted},
		"as is, committed dirt":   {repo: true, before: "echo x >>a.txt", work: commit, status: fleet.Accepted},
		"as is, only ignored":     {repo: true, before: "echo '*.o' >.gitignore", work: "touch a.o", status: fleet.Suspicious},
		"as is, no commit yet":    {before: "git init -q; touch b", work: nothing, status: fleet.Suspicious},
		"as is, no repository":    {work: nothing, status: fleet.Suspicious},
		"as is, a file":           {work: "echo x >b.txt", status: fleet.Accepted},
		"as is, after the setup":  {setup: "echo x >b.txt", work: nothing, status: fleet.Suspicious},
		"copy, dirty before":      {kind: fleet.WorkspaceCopy, repo: true, before: "echo x >>a.txt", work: nothing, status: fleet.Suspicious},
		"copy, committed":         {kind: fleet.WorkspaceCopy, repo: true, work: "echo x >>a.txt;" + commit, status: fleet.Accepted},
		"copy, no repository":     {kind: fleet.WorkspaceCopy, work: nothing, status: fleet.Suspicious},
		"copy, a file":            {kind: fleet.WorkspaceCopy, work: "echo xyz >a.txt", status: fleet.Accepted},
		"worktree, nothing":       {kind: fleet.WorkspaceWorktree, repo: true, work: nothing, status: fleet.Suspicious},
		"worktree, after a setup": {kind: fleet.WorkspaceWorktree, repo: true, setup: "echo x >b.txt", work: nothing, status: fleet.Suspicious},
		"worktree, changed":       {kind: fleet.WorkspaceWorktree, repo: true, work: "echo x >>a.txt", status: fleet.Accepted},
		"worktree, committed":     {kind: fleet.WorkspaceWorktree, repo: true, work: "echo x >>a.txt;" + commit, status: fleet.Accepted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := t.TempDir()
			if c.repo {
				from = repository(t)
			}
			shell(t, from, c.before)
			// Out is in a repository that ignores it: git falls through to that one.
			around := repository(t)
			shell(t, around, "echo out >.gitignore;"+commit)
			out, dir := filepath.Join(around, "out"), from
			if c.kind != "" {
				dir = filepath.Join(out, "workspaces", "t0", "1")
			}
			results, err := collect(t, fleet.Job{
				Tasks: []fleet.Task{{ID: "t0", Prompt: "do", ExpectChange: true}}, Attempts: 1,
				Options: worker(t, dir, c.work, scripted.Text("done")), Out: out,
				Workspace: &fleet.Workspace{Kind: c.kind, From: from, Setup: c.setup},
			})
			require.NoError(t, err)
			assert.Equal(t, c.status, results["t0"].Status, results["t0"].Error)
		})
	}
}

// worker is an agent that runs a line of shell in a directory, unless a message is for one of
// turns.
func worker(t *testing.T, dir, line string, last scripted.Step, turns ...scripted.Turn) *sdk.Options {
	t.Helper()
	work := turn(&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": line}, Result: "done", Effect: "work"}, last)
	return &sdk.Options{
		Backend: scripted.New(
			scripted.WithScript(&scripted.Script{Transcript: true, Turns: append(turns, work)}), scripted.WithHistory(&scripted.MemoryHistory{}),
			scripted.WithEffect(func(string, string) error { shell(t, dir, line); return nil })),
		CanUseTool: func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			return sdk.Allow(), nil
		},
	}
}

// What an attempt has changed counts for the next one in the same workspace.
func TestAChangeOfAnEarlierAttempt(t *testing.T) {
	t.Parallel()
	for work, want := range map[string]fleet.Status{"true": fleet.Suspicious, "echo x >>a.txt": fleet.Accepted} {
		t.Run(work, func(t *testing.T) {
			t.Parallel()
			yes, text, from := true, "x", repository(t)
			results, err := collect(t, fleet.Job{
				Tasks:   []fleet.Task{{ID: "t0", Prompt: "do", ExpectChange: true}},
				Options: worker(t, from, work, &scripted.Result{IsError: &yes, Text: &text, APIErrorStatus: 529}, when("interrupted", scripted.Text("done"))),
				Out:     t.TempDir(), Workspace: &fleet.Workspace{From: from},
			})
			require.NoError(t, err)
			assert.Equal(t, "fresh:overloaded resume:"+string(want), modes(results["t0"]))
		})
	}
}

// Out may be in a repository, and so is a copy of a directory that is none. Its files are not
// added to the index there.
func TestACopyInsideOfARepository(t *testing.T) {
	t.Parallel()
	around, from := repository(t), t.TempDir()
	out := filepath.Join(around, "out")
	require.NoError(t, os.WriteFile(filepath.Join(from, "b.txt"), nil, 0o600))
	results, err := collect(t, fleet.Job{Tasks: tasks(1), Options: backend(), Out: out, Workspace: &fleet.Workspace{Kind: fleet.WorkspaceCopy, From: from}})
	require.NoError(t, err)
	assert.Empty(t, results["t0"].Diff)
	index, err := exec.Command("git", "-C", around, "ls-files").Output()
	require.NoError(t, err)
	assert.Equal(t, "a.txt\n", string(index))
}
