package fleet_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet"
)

// locked is a directory with a lockfile.
func locked(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "lock"), []byte("one\n"), 0o600))
	return dir
}

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

// filling is a Setup that says in a log whether it found the cache full, empty or broken.
func filling(log string) string {
	return `case "$(ls "$TROUPE_CACHE" | tr -d '\n')" in full) echo full;; "") echo empty; touch "$TROUPE_CACHE/a"; ` +
		`test -e ` + log + `.fail && rm ` + log + `.fail && exit 1; sleep 0.05; mv "$TROUPE_CACHE/a" "$TROUPE_CACHE/full";; *) echo broken;; esac >>` + log
}

func TestTheCacheOfSetups(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(t *testing.T, log, cache string) // makes the cache of an earlier job
		want   string
	}{
		"nothing":            {func(*testing.T, string, string) {}, "empty full full full"},
		"a setup that fails": {func(t *testing.T, log, _ string) { require.NoError(t, os.WriteFile(log+".fail", nil, 0o600)) }, "empty empty full full full"},
		"a host that died": {func(t *testing.T, _, cache string) {
			require.NoError(t, os.Mkdir(cache, 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(cache, "half"), nil, 0o600))
		}, "empty full full full"},
		"a complete one": {func(t *testing.T, _, cache string) {
			require.NoError(t, os.Mkdir(cache, 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(cache, "full"), nil, 0o600))
			require.NoError(t, os.WriteFile(cache+".done", nil, 0o600))
		}, "full full full full"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
			cache := filepath.Join(out, "cache", "63ef6915138ddb0185a8026698ca54dd")
			require.NoError(t, os.Mkdir(filepath.Dir(cache), 0o700))
			c.before(t, log, cache)
			results, err := collect(t, fleet.Job{
				Tasks: tasks(4), Options: backend(), Out: out, Concurrency: 4, Setups: 4,
				Workspace: &fleet.Workspace{Kind: fleet.WorkspaceCopy, From: locked(t), Setup: filling(log), Lockfiles: []string{"lock"}},
			})
			require.NoError(t, err)
			for _, r := range results {
				assert.Equal(t, fleet.Accepted, r.Status, r.Error)
			}
			assert.Equal(t, c.want, strings.Join(strings.Fields(read(t, log)), " "))
			assert.FileExists(t, cache+".done", "the key is a hash of names and contents")
		})
	}
}

// Another content of the lockfile is another cache.
func TestCachesOfOtherLockfiles(t *testing.T) {
	t.Parallel()
	log, all := filepath.Join(t.TempDir(), "log"), tasks(4)
	other := locked(t)
	require.NoError(t, os.WriteFile(filepath.Join(other, "lock"), []byte("two\n"), 0o600))
	for i, from := range []string{locked(t), locked(t), other, other} {
		all[i].Workspace = &fleet.Workspace{From: from, Setup: filling(log), Lockfiles: []string{"lock", "lock"}}
	}
	_, err := collect(t, fleet.Job{Tasks: all, Options: backend(), Out: t.TempDir(), Concurrency: 1})
	require.NoError(t, err)
	assert.Equal(t, []string{"empty", "full", "empty", "full"}, lines(read(t, log)))
}

// The attempt after a Setup that failed does not go on in its workspace.
func TestASetupThatFails(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(log+".fail", nil, 0o600))
	for name, c := range map[string]struct {
		space fleet.Workspace
		modes string
		err   string
	}{
		"once": {fleet.Workspace{Kind: fleet.WorkspaceCopy, Setup: filling(log), Lockfiles: []string{"lock"}}, "fresh:bad_workspace fresh:accepted", ""},
		"no lockfile": {
			fleet.Workspace{Kind: fleet.WorkspaceCopy, Setup: "true", Lockfiles: []string{"lock", "go.sum"}}, "fresh:bad_workspace",
			"the lockfile go.sum cannot be read",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.space.From = locked(t)
			results, err := collect(t, fleet.Job{Tasks: tasks(1), Options: backend(), Out: t.TempDir(), Workspace: &c.space})
			require.NoError(t, err)
			assert.Equal(t, c.modes, modes(results["t0"]))
			assert.Contains(t, results["t0"].Error, c.err)
		})
	}
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
	for name, lockfiles := range map[string][]string{"for a turn": nil, "for the cache": {"lock"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			began, gate := filepath.Join(dir, "began"), filepath.Join(dir, "gate")
			require.NoError(t, syscall.Mkfifo(began, 0o600))
			require.NoError(t, syscall.Mkfifo(gate, 0o600))
			h, err := fleet.Start(t.Context(), fleet.Job{
				Tasks: tasks(2), Options: backend(), Out: t.TempDir(), Concurrency: 2, Setups: 1,
				Workspace: &fleet.Workspace{From: locked(t), Setup: "echo $TROUPE_TASK >" + began + "; read x <" + gate, Lockfiles: lockfiles},
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
		})
	}
}
