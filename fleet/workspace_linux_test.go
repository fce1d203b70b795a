package fleet_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/runtime"
)

func repository(t *testing.T) string {
	t.Helper()
	repo := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(repo, "a.txt"), []byte("one\n"), 0o600))
	for _, args := range [][]string{
		{"init", "-q"}, {"config", "maintenance.auto", "false"}, {"add", "."}, // git would tidy up in the background
		{"-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "one"},
	} {
		out, err := exec.Command("git", append([]string{"-C", repo}, args...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	return repo
}

// Many worktrees of one repository at once: each is good, and the repository stays clean.
func TestManyWorktreesAtOnce(t *testing.T) {
	t.Parallel()
	n := 50
	if testing.Short() {
		n = 10
	}
	repo, out := repository(t), t.TempDir()
	results, err := collect(t, fleet.Job{
		Tasks: tasks(n), Options: backend(), Concurrency: n, Out: out,
		Workspace: &fleet.Workspace{Kind: fleet.WorkspaceWorktree, From: repo, Setup: "echo $TROUPE_TASK $TROUPE_PORT_BASE >>a.txt", Teardown: "touch gone"},
		Verify:    &fleet.Verify{Command: `test "$(git rev-parse --show-toplevel)" = "$(pwd -P)" && grep -q "$TROUPE_TASK" a.txt`},
	})
	require.NoError(t, err)
	places := map[string]bool{}
	for _, r := range results {
		require.Equal(t, fleet.Accepted, r.Status, r.Error)
		places[r.Workspace] = true
		diff := read(t, out, r.Diff)
		assert.Contains(t, diff, "+"+r.ID+" ")
	}
	assert.Len(t, places, n)
	status, err := exec.Command("git", "-C", repo, "status", "--porcelain").Output()
	require.NoError(t, err)
	assert.Empty(t, string(status))
}

// Several jobs may use a repository, which has many paths. Nothing of it runs: a hook may have
// been put there by an agent that had the same repository.
func TestJobsThatShareARepository(t *testing.T) {
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(repo, ".git", "hooks", "post-checkout"), []byte("#!/bin/sh\ntouch "+dir+"/ran\n"), 0o700))
	shell(t, repo, "mkdir sub; touch sub/b.txt; git add sub; git -c user.name=t -c user.email=t@example.com commit -qm two")
	require.NoError(t, os.Symlink(repo, filepath.Join(dir, "link")))
	rt, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, rt.Shutdown(context.WithoutCancel(t.Context()))) })
	var jobs sync.WaitGroup
	for _, from := range []string{repo, repo + "/", filepath.Join(repo, "sub"), filepath.Join(dir, "link")} {
		jobs.Go(func() {
			o := backend()
			o.Runtime = rt
			results, err := collect(t, fleet.Job{
				Tasks: tasks(2), Options: o, Out: t.TempDir(), Attempts: 1,
				Workspace: &fleet.Workspace{Kind: fleet.WorkspaceWorktree, From: from, Remove: true},
			})
			assert.NoError(t, err)
			for _, r := range results {
				assert.Equal(t, fleet.Accepted, r.Status, r.Error)
			}
		})
	}
	jobs.Wait()
	assert.NoFileExists(t, filepath.Join(dir, "ran"))
	list, err := exec.Command("git", "-C", repo, "worktree", "list").Output()
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(string(list), "\n"), "%s", list)
}

func TestWorkspaces(t *testing.T) {
	t.Parallel()
	from := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(from, "a.txt"), []byte("one\n"), 0o600))
	for name, c := range map[string]struct {
		space  fleet.Workspace
		status fleet.Status
		err    string
		gone   bool
	}{
		"as is":   {fleet.Workspace{From: from}, fleet.Accepted, "", false},
		"a copy":  {fleet.Workspace{Kind: fleet.WorkspaceCopy, From: from}, fleet.Accepted, "", false},
		"removed": {fleet.Workspace{Kind: fleet.WorkspaceCopy, From: from, Remove: true}, fleet.Accepted, "", true},
		"a function": {fleet.Workspace{Make: func(_ context.Context, t *fleet.Task, dir string) error {
			return os.WriteFile(filepath.Join(dir, "a.txt"), nil, 0o600)
		}}, fleet.Accepted, "", false},
		"one that fails": {fleet.Workspace{Make: func(context.Context, *fleet.Task, string) error { panic("no") }}, fleet.BadWorkspace, "no", true},
		"a setup that fails": {
			fleet.Workspace{Kind: fleet.WorkspaceCopy, From: from, Setup: "echo broken; exit 2"}, fleet.BadWorkspace, "broken", false,
		},
		"no repository": {fleet.Workspace{Kind: fleet.WorkspaceWorktree, From: from}, fleet.BadWorkspace, "not a git repository", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			results, err := collect(t, fleet.Job{
				Tasks: tasks(1), Options: backend(), Out: t.TempDir(), Attempts: 1,
				Workspace: &c.space, Verify: &fleet.Verify{Command: "test -f a.txt"},
			})
			require.NoError(t, err)
			r := results["t0"]
			assert.Equal(t, c.status, r.Status, r.Error)
			assert.Contains(t, r.Error, c.err)
			if c.gone {
				assert.NoDirExists(t, r.Workspace)
			}
		})
	}
}

// Git falls through to the repository around a worktree that is only half there. Nothing
// may run then.
func TestAWorktreeThatIsNoLongerOne(t *testing.T) {
	t.Parallel()
	yes, text := true, "x"
	overloaded := turn(&scripted.Result{IsError: &yes, Text: &text, APIErrorStatus: 529})
	for name, damage := range map[string]func(dir string) error{
		"no pointer": func(dir string) error { return os.Remove(filepath.Join(dir, ".git")) },
		"gone":       os.RemoveAll,
		"not listed": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, ".git"), []byte("gitdir: /nowhere\n"), 0o600)
		},
		"the place of another worktree": func(dir string) error {
			own, err := os.ReadFile(filepath.Join(dir, ".git"))
			name := filepath.Join(strings.TrimSpace(strings.TrimPrefix(string(own), "gitdir: ")), "gitdir")
			return errors.Join(err, os.WriteFile(name, []byte("/nowhere/.git\n"), 0o600))
		},
		"another one": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, ".git")), os.Mkdir(filepath.Join(dir, ".git"), 0o700))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := t.TempDir()
			results, err := collect(t, fleet.Job{
				Tasks: tasks(1), Options: backend(overloaded), Out: out,
				Workspace: &fleet.Workspace{Kind: fleet.WorkspaceWorktree, From: repository(t)},
				OnEvent: func(e fleet.Event) {
					if e.Kind == fleet.EventEnded {
						assert.NoError(t, damage(filepath.Join(out, "workspaces", "t0", "1")))
					}
				},
			})
			require.NoError(t, err)
			assert.Equal(t, fleet.BadWorkspace, results["t0"].Status)
			assert.Equal(t, "fresh:overloaded resume:bad_workspace", modes(results["t0"]))
		})
	}
}

// A fresh worktree is checked, too: its setup may have damaged it.
func TestASetupThatDamagesItsWorktree(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ setup, err string }{
		"no pointer":   {"rm .git", "it is no worktree any more"},
		"a repository": {"rm .git; git init -q", ".git is not a file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			results, err := collect(t, fleet.Job{
				Tasks: tasks(1), Options: backend(), Out: t.TempDir(),
				Workspace: &fleet.Workspace{Kind: fleet.WorkspaceWorktree, From: repository(t), Setup: c.setup},
			})
			require.NoError(t, err)
			assert.Equal(t, "fresh:bad_workspace", modes(results["t0"]))
			assert.Contains(t, results["t0"].Error, c.err)
			assert.Empty(t, results["t0"].SessionID, "nothing has run")
		})
	}
}
