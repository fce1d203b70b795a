package jobs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet"
)

// The job runs git itself in the workspaces of its tasks: to make a diff, and to find out
// whether something has changed. What is in a workspace is the agent's. An agent in a
// container, or of another user, must not be able to make the host run a program: git takes
// core.fsmonitor, filters and more from the configuration that it finds there.
func TestHostGitRunsNothingOfTheAgents(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it runs a POSIX shell")
	}
	type workspace struct {
		kind fleet.WorkspaceKind
		// plant does what the agent does in its workspace. program is the attacker's.
		plant func(t *testing.T, dir, program string) error
		task  fleet.Task
	}
	other := func(t *testing.T, dir, program string) string { // a repository of the agent's own
		evil := filepath.Join(dir, "evil")
		if err := os.MkdirAll(evil, 0o755); err != nil {
			t.Error(err)
		}
		for _, args := range [][]string{{"init", "-q"}, {"config", "core.fsmonitor", program},
			{"-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-m", "x"}} {
			if out, err := exec.Command("git", append([]string{"-C", evil, "-c", "core.fsmonitor=false"}, args...)...).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", args, out)
			}
		}
		return evil
	}
	for name, w := range map[string]workspace{
		"a worktree whose .git file leads to a repository of the agent's": {fleet.WorkspaceWorktree, func(t *testing.T, dir, program string) error {
			evil := other(t, dir, program)
			return os.WriteFile(filepath.Join(dir, ".git"), []byte("gitdir: "+filepath.Join(evil, ".git")+"\n"), 0o600)
		}, fleet.Task{}},
		"a copy with another configuration": {fleet.WorkspaceCopy, func(_ *testing.T, dir, program string) error {
			f, err := os.OpenFile(filepath.Join(dir, ".git", "config"), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = fmt.Fprintf(f, "[core]\n\tfsmonitor = %s\n", program)
			return err
		}, fleet.Task{}},
		"a directory as it is, and ExpectChange": {"", func(_ *testing.T, dir, program string) error {
			f, err := os.OpenFile(filepath.Join(dir, ".git", "config"), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = fmt.Fprintf(f, "[core]\n\tfsmonitor = %s\n", program)
			return err
		}, fleet.Task{ExpectChange: true}},
	} {
		t.Run(name, func(t *testing.T) {
			repo, out, host := repository(t), t.TempDir(), t.TempDir()
			proof := filepath.Join(host, "the host ran it")
			program := filepath.Join(host, "program.sh")
			require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\ntouch '"+proof+"'\n"), 0o700))
			task := w.task
			task.ID, task.Prompt = "t", "x"
			o := acting(func() error {
				dir := repo
				if w.kind != "" {
					dir = filepath.Join(out, "workspaces", "t", "1")
				}
				return w.plant(t, dir, program)
			})
			r := collect(t, fleet.Job{Tasks: []fleet.Task{task}, Options: o, Out: out, Attempts: 1,
				Workspace: &fleet.Workspace{Kind: w.kind, From: repo}})["t"]
			t.Log(r.Status, r.Error)
			if exists(proof) {
				t.Errorf("the host's git has run the agent's program")
			}
		})
	}
}
