package fleet_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/sdk"
)

// mountsEnv makes a test mount file systems: its process has mounts of its own. With "require"
// in requireMountsEnv, a kernel that forbids that fails the test.
const (
	mountsEnv        = "TROUPE_FLEET_TEST_MOUNTS"
	requireMountsEnv = "TROUPE_NAMESPACES"
)

// ownMounts runs the test again, in a process that may mount. It returns true there.
func ownMounts(t *testing.T) bool {
	t.Helper()
	missing := func(why string) {
		if os.Getenv(requireMountsEnv) == "require" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	if os.Getenv(mountsEnv) != "" {
		if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			missing("the kernel forbids mounts in a new namespace: " + err.Error())
		}
		return true
	}
	t.Parallel()
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.timeout=2m", "-test.run=^"+t.Name()+"$")
	c.Env = append(os.Environ(), mountsEnv+"=1")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		c.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	out, err := c.CombinedOutput()
	if len(out) == 0 && err != nil {
		missing("the kernel forbids new namespaces: " + err.Error())
	}
	require.NoError(t, err, "%s", out)
	if strings.Contains(string(out), "--- SKIP") {
		t.Skip(string(out))
	}
	t.Logf("%s", out)
	return false
}

// smallDisk mounts a tmpfs of that many KiB.
func smallDisk(t *testing.T, dir string, kib int) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dk", kib)))
	t.Cleanup(func() { assert.NoError(t, unix.Unmount(dir, 0)) })
}

func remount(t *testing.T, dir string, flags uintptr, options string) {
	t.Helper()
	require.NoError(t, unix.Mount("", dir, "", unix.MS_REMOUNT|flags, options))
}

// diskJob is a job of agents that are processes.
func diskJob(t *testing.T, dir string, n int) fleet.Job {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	return fast(fleet.Job{
		Tasks: tasks(n), Out: filepath.Join(dir, "out"), Concurrency: 3,
		Options: &sdk.Options{
			Backend: sdk.Claude(sdk.ClaudeConfig{Path: exe}),
			Env:     map[string]string{agentEnv: "1", "HOME": filepath.Join(dir, "home"), "ANTHROPIC_API_KEY": "k", "TROUPE_TEST_DIR": dir},
		},
	})
}

// recovers resumes the job on a disk that is well again, and checks that each task has one result.
// A task may have failed for good while the disk was not.
func recovers(t *testing.T, job fleet.Job, first map[string]fleet.TaskResult, problem string) {
	t.Helper()
	job.Resume, job.OnEvent = true, nil
	all, err := collect(t, job)
	require.NoError(t, err)
	require.Len(t, all, len(job.Tasks))
	for id, r := range all {
		if was, over := first[id]; over {
			assert.True(t, r.Earlier, "%s has run again", id)
			assert.Equal(t, was.Status, r.Status, id)
		}
		if !r.OK() {
			assert.Contains(t, r.Error, problem, id)
		}
	}
	results := map[string]int{}
	for _, line := range lines(read(t, job.Out, journal.Name)) {
		var rec journal.Record
		require.NoError(t, json.Unmarshal([]byte(line), &rec))
		if rec.Kind == "result" {
			results[rec.Task]++
		}
	}
	require.Len(t, results, len(job.Tasks))
	for id, n := range results {
		assert.Equal(t, 1, n, "results of %s in the journal", id)
	}
	assert.Len(t, lines(read(t, job.Out, "results.jsonl")), len(job.Tasks))
}

// A job whose disk is full stops, says so, and goes on when there is space again.
func TestAFullDisk(t *testing.T) {
	if !ownMounts(t) {
		return
	}
	dir := t.TempDir()
	job := diskJob(t, dir, 20)
	smallDisk(t, job.Out, 96)
	first, err := collect(t, job)
	var stopped *fleet.StoppedError
	require.ErrorAs(t, err, &stopped)
	assert.Equal(t, fleet.StopJournal, stopped.Reason)
	assert.Equal(t, len(job.Tasks)-len(first), stopped.Left)
	var failed *journal.FailedError
	require.ErrorAs(t, err, &failed)
	require.ErrorIs(t, failed, syscall.ENOSPC)
	require.ErrorContains(t, err, "fix the cause, then resume the job")
	assert.NotEmpty(t, first)
	assert.Empty(t, alive(t, dir), "processes that are left")
	remount(t, job.Out, 0, "size=64m")
	recovers(t, job, first, syscall.ENOSPC.Error())
	assert.Empty(t, alive(t, dir), "processes that are left")
}

// A directory that cannot be written is an error before anything starts.
func TestADiskThatIsReadOnly(t *testing.T) {
	if !ownMounts(t) {
		return
	}
	dir := t.TempDir()
	job := diskJob(t, dir, 3)
	smallDisk(t, job.Out, 1024)
	remount(t, job.Out, unix.MS_RDONLY, "")
	started := 0
	job.OnEvent = func(e fleet.Event) { started++ }
	first, err := collect(t, job)
	require.ErrorIs(t, err, syscall.EROFS)
	require.ErrorContains(t, err, job.Out)
	require.ErrorContains(t, err, "make it writable, or give another directory")
	assert.Empty(t, first)
	assert.Zero(t, started)
	remount(t, job.Out, 0, "")
	job.OnEvent = nil
	all, err := collect(t, job)
	require.NoError(t, err, "nothing of the first start is in the way")
	assert.Len(t, all, len(job.Tasks))
}

// The same in the middle of a job: no kernel makes a disk read-only while files on it are
// open for writing, so another mount that is read-only covers the directory. The journal can
// be written, and no other file.
func TestADiskThatBecomesReadOnly(t *testing.T) {
	if !ownMounts(t) {
		return
	}
	dir := t.TempDir()
	job := diskJob(t, dir, 12)
	smallDisk(t, job.Out, 8192)
	cover := filepath.Join(dir, "cover")
	require.NoError(t, os.Mkdir(cover, 0o700))
	require.NoError(t, unix.Mount(job.Out, cover, "", unix.MS_BIND, ""))
	t.Cleanup(func() { assert.NoError(t, unix.Unmount(cover, 0)) })
	remount(t, cover, unix.MS_BIND|unix.MS_RDONLY, "")
	over := 0
	job.OnEvent = func(e fleet.Event) {
		if e.Kind == fleet.EventFinished {
			if over++; over == 4 {
				assert.NoError(t, unix.Mount(cover, job.Out, "", unix.MS_BIND, ""))
			}
		}
	}
	first, err := collect(t, job)
	var failed *journal.FailedError
	require.ErrorAs(t, err, &failed)
	require.ErrorIs(t, failed, syscall.EROFS)
	require.ErrorContains(t, err, "fix the cause, then resume the job")
	assert.GreaterOrEqual(t, len(first), 4)
	assert.Less(t, len(first), len(job.Tasks))
	assert.Empty(t, alive(t, dir), "processes that are left")
	require.NoError(t, unix.Unmount(job.Out, 0))
	recovers(t, job, first, syscall.EROFS.Error())
	assert.Empty(t, alive(t, dir), "processes that are left")
}
