package fleet_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// Setups and teardowns share one cap.
func TestSetupsAtATime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		setups int
		places string
	}{"the default": {0, "1 2"}, "one": {1, "1"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			line := "cd " + dir + "; for p in " + c.places + "; do mkdir place$p 2>/dev/null && mine=$p && break; done\n" +
				"test -n \"$mine\" || touch many; sleep 0.02; touch ran; rmdir place$mine"
			results, err := collect(t, fleet.Job{
				Tasks: tasks(8), Options: backend(), Concurrency: 8, Setups: c.setups, Attempts: 1,
				Workspace: &fleet.Workspace{From: t.TempDir(), Setup: line, Teardown: line},
			})
			require.NoError(t, err)
			for _, r := range results {
				assert.Equal(t, fleet.Accepted, r.Status, r.Error)
			}
			assert.FileExists(t, filepath.Join(dir, "ran"))
			assert.NoFileExists(t, filepath.Join(dir, "many"))
		})
	}
}

// Commands of a job run in a shell, also without one on PATH.
func TestASetupWithoutAShellOnPath(t *testing.T) { //nolint:paralleltest // it sets the environment
	t.Setenv("PATH", t.TempDir())
	results, err := collect(t, fleet.Job{
		Tasks: tasks(1), Options: backend(), Attempts: 1, Out: t.TempDir(), Workspace: &fleet.Workspace{Kind: fleet.WorkspaceCopy, From: t.TempDir(), Setup: "true"},
	})
	require.NoError(t, err)
	assert.Equal(t, fleet.Accepted, results["t0"].Status, results["t0"].Error)
}

// A machine that cannot start the Setup now keeps no workspace for each of the tries.
func TestASetupOnAMachineThatIsShort(t *testing.T) {
	t.Parallel()
	for _, kind := range []fleet.WorkspaceKind{fleet.WorkspaceCopy, fleet.WorkspaceWorktree} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			out := t.TempDir()
			var tries atomic.Int32
			short := sdk.SpawnThrough(func(c *session.Command) ([]string, func(context.Context) error, error) {
				if tries.Add(1) == 1 {
					return nil, nil, &os.PathError{Op: "open", Path: "/dev/null", Err: syscall.EMFILE}
				}
				return c.Argv(), nil, nil
			})
			results, err := collect(t, fleet.Job{
				Tasks: tasks(1), Options: backend(), Out: out, CommandSpawner: short, Workspace: &fleet.Workspace{Kind: kind, From: repository(t), Setup: "true"},
			})
			require.NoError(t, err)
			r := results["t0"]
			assert.Equal(t, fleet.Accepted, r.Status, r.Error)
			left, err := filepath.Glob(filepath.Join(out, "workspaces", "t0", "*"))
			require.NoError(t, err)
			assert.Equal(t, []string{filepath.Join(out, "workspaces", "t0", "2")}, left)
			assert.Equal(t, r.Workspace, left[0])
		})
	}
}

// The attempt after a Setup that failed does not go on in its workspace.
func TestASetupThatFails(t *testing.T) {
	t.Parallel()
	once := t.TempDir()
	results, err := collect(t, fleet.Job{Tasks: tasks(1), Options: backend(), Out: t.TempDir(), Workspace: &fleet.Workspace{
		Kind: fleet.WorkspaceCopy, From: t.TempDir(), Setup: "test ! -e half || exit 3; touch half; rmdir " + once + " && exit 1; true",
	}})
	require.NoError(t, err)
	assert.Equal(t, "fresh:bad_workspace fresh:accepted", modes(results["t0"]))
}

// A teardown and the setup of the next task never have the ports of one slot, and results
// do not wait for teardowns.
func TestATeardownKeepsItsSlot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	use := "mkdir " + dir + "/$TROUPE_PORT_BASE || touch " + dir + "/clash; sleep 0.05; rmdir " + dir + "/$TROUPE_PORT_BASE; "
	_, err := collect(t, fleet.Job{
		Tasks: tasks(10), Options: backend(), Concurrency: 2, Setups: 8,
		Workspace: &fleet.Workspace{From: t.TempDir(), Setup: use, Teardown: use + "touch " + dir + "/$TROUPE_TASK"},
	})
	require.NoError(t, err)
	assert.NoFileExists(t, filepath.Join(dir, "clash"))
	assert.FileExists(t, filepath.Join(dir, "t9"))
}

// A job that is killed leaves no teardown behind.
func TestKillDuringATeardown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pid := filepath.Join(dir, "pid")
	require.NoError(t, syscall.Mkfifo(pid, 0o600))
	h, err := fleet.Start(t.Context(), fleet.Job{
		Tasks: tasks(1), Options: backend(), Workspace: &fleet.Workspace{From: dir, Teardown: "echo $$ >pid; exec sleep 600"},
	})
	require.NoError(t, err)
	for r, err := range h.Results(t.Context()) {
		require.NoError(t, err)
		require.Equal(t, fleet.Accepted, r.Status, "the result does not wait for the teardown")
		break
	}
	number, err := strconv.Atoi(strings.TrimSpace(read(t, pid)))
	require.NoError(t, err)
	h.Kill()
	<-h.Done()
	assert.ErrorIs(t, syscall.Kill(number, 0), syscall.ESRCH)
}

// A task that waits for the setup of another one can be canceled.
func TestCancelOfAWaitingSetup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	began, gate := filepath.Join(dir, "began"), filepath.Join(dir, "gate")
	require.NoError(t, syscall.Mkfifo(began, 0o600))
	require.NoError(t, syscall.Mkfifo(gate, 0o600))
	h, err := fleet.Start(t.Context(), fleet.Job{
		Tasks: tasks(2), Options: backend(), Out: t.TempDir(), Concurrency: 2, Setups: 1,
		Workspace: &fleet.Workspace{From: t.TempDir(), Setup: "echo $TROUPE_TASK >" + began + "; read x <" + gate},
	})
	require.NoError(t, err)
	first, waits := strings.TrimSpace(read(t, began)), "t1"
	if first == waits {
		waits = "t0"
	}
	require.NoError(t, h.CancelTask(t.Context(), waits))
	var order []string
	for r, err := range h.Results(context.WithoutCancel(t.Context())) {
		require.NoError(t, err)
		if order = append(order, r.ID+" "+string(r.Status)); len(order) == 1 {
			require.NoError(t, os.WriteFile(gate, []byte("go\n"), 0o600))
		}
	}
	assert.Equal(t, []string{waits + " canceled", first + " accepted"}, order)
}
