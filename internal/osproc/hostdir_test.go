//go:build linux

// Linux: locks and processes are looked up in /proc.

package osproc

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/kernel"
)

// files are all files below dir, directories left out. What goes away meanwhile is none.
func files(t *testing.T, dir string) (paths []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) && path != dir {
			return nil
		}
		if err == nil && !e.IsDir() {
			paths = append(paths, path)
		}
		return err
	}))
	return paths
}

// hostWith is a host of its own whose temporary files and state are in two directories.
func hostWith(t *testing.T, temp, state string, agentArgs ...string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", append([]string{agentBinary}, agentArgs...)...)
	cmd.Env = append(os.Environ(), "OSPROC_TEST_HOST=killed", "OSPROC_TEST_TEMP="+temp, "OSPROC_TEST_STATE="+state)
	cmd.Stderr = os.Stderr
	_, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, bufio.NewReader(out)
}

// What a killed host leaves is ended by the next one, and by none while it lives.
func TestTheNextHostSweeps(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name                string
		state, shared       bool // records are kept; in the directory of the temporary files
		died                syscall.Signal
		processes, launches int // that are left after the sweep, and that it is told of
	}{
		{"files alone", false, false, syscall.SIGKILL, 1, 1},
		{"processes too", true, false, syscall.SIGKILL, 0, 2},
		{"all in one directory", true, true, syscall.SIGKILL, 0, 1},
		{"terminated", true, true, syscall.SIGTERM, 0, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			temp, state := t.TempDir(), ""
			if tc.shared {
				state = temp
			} else if tc.state {
				state = filepath.Join(t.TempDir(), "made", "when needed")
			}
			token := newToken()
			cmd, out := hostWith(t, temp, state, token, "session")
			_, err := out.ReadString('\n')
			require.NoError(t, err)
			require.Len(t, files(t, temp), 1)
			living, _ := hostWith(t, temp, state, newToken(), "wait") // its directory is left alone
			require.Eventually(t, func() bool { return len(files(t, temp)) == 2 }, waitLimit, time.Millisecond)

			next := func() (swept []Remains) {
				var mu sync.Mutex
				l := NewLauncher(Config{TempDir: temp, StateDir: state, HostSwept: func(r Remains) {
					mu.Lock()
					defer mu.Unlock()
					swept = append(swept, r)
				}})
				require.NoError(t, l.SweepHosts(testContext(t)))
				awaitIdle(t, l)
				return swept
			}
			assert.Empty(t, next(), "both hosts live")
			assert.Len(t, files(t, temp), 2)
			require.Len(t, withToken(token), 3)

			require.NoError(t, cmd.Process.Signal(tc.died))
			_ = cmd.Wait()
			swept, launches := next(), 0
			for _, r := range swept {
				require.NoError(t, r.Err)
				launches += r.Launches
			}
			assert.Equal(t, tc.launches, launches)
			require.Eventually(t, func() bool { return len(withToken(token)) == tc.processes }, waitLimit, time.Millisecond)
			assert.Len(t, files(t, temp), 1, "those of the host that lives")
			assert.Empty(t, next())
			for _, pid := range withToken(token) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			require.NoError(t, living.Process.Kill())
			_ = living.Wait()
			require.Len(t, next(), map[bool]int{true: 2, false: 1}[tc.state && !tc.shared])
			assert.Empty(t, files(t, temp))
		})
	}
}

// A host that ends in order leaves nothing, and holds nothing while it is idle.
func TestHostDirsEnd(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	l := NewLauncher(Config{TempDir: temp, StateDir: temp})
	for range 2 {
		c := agent(newToken(), "wait")
		c.Files = []File{{Name: "a", Data: []byte("1")}}
		p, q := launchAgent(t, l, c), launchAgent(t, l, agent(newToken(), "wait"))
		requireReady(t, p)
		requireReady(t, q)
		hosts, err := os.ReadDir(temp)
		require.NoError(t, err)
		require.Len(t, hosts, 1)
		records, err := os.ReadDir(filepath.Join(temp, hosts[0].Name()))
		require.NoError(t, err)
		assert.Len(t, records, 2)
		finish(t, p)
		finish(t, q)
		hosts, err = os.ReadDir(temp)
		require.NoError(t, err)
		assert.Empty(t, hosts)
		assert.Empty(t, l.temp.Path())
	}
}

func TestHostDirs(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	h := NewHostDir(base, kernel.NewRand(nil))
	a, err := h.Add("a")
	require.NoError(t, err)
	_, err = h.Add("a")
	require.ErrorIs(t, err, os.ErrExist)
	dead, err := deadHosts(base)
	require.NoError(t, err)
	assert.Empty(t, dead, "also for this process")

	// Somebody removes it, as cleaners of temporary files do.
	require.NoError(t, os.RemoveAll(h.Path()))
	b, err := h.Add("b")
	require.NoError(t, err)
	record, err := h.Record("c")
	require.NoError(t, err)
	assert.FileExists(t, record)
	_, err = h.Record("c")
	require.ErrorIs(t, err, os.ErrExist)
	first, err := os.Stat(record)
	require.NoError(t, err)
	require.NoError(t, h.End(record, false))
	assert.NoFileExists(t, record)
	record, err = h.Record("d")
	require.NoError(t, err)
	second, err := os.Stat(record)
	require.NoError(t, err)
	assert.True(t, os.SameFile(first, second), "a record that has ended is used again")
	require.NoError(t, h.End(record, false))
	require.NoError(t, h.Remove(a, false))
	require.NoError(t, h.Remove(b, true))
	assert.FileExists(t, b, "its name was kept")
	assert.Empty(t, h.Path())

	// What is kept belongs to nobody now. A file and a link are no host's.
	require.NoError(t, os.WriteFile(filepath.Join(base, hostPrefix+"file"), nil, 0o600))
	require.NoError(t, os.Symlink(filepath.Dir(b), filepath.Join(base, hostPrefix+"link")))
	// A child that another test is starting has the lock until it is its program.
	require.Eventually(t, func() bool {
		dead, err = deadHosts(base)
		return err != nil || len(dead) > 0
	}, waitLimit, time.Millisecond)
	require.NoError(t, err)
	require.Len(t, dead, 1)
	assert.True(t, strings.HasPrefix(b, dead[0].Name()))
	require.NoError(t, dead[0].Close())

	_, err = NewHostDir(filepath.Join(base, "missing"), kernel.NewRand(nil)).Add("a")
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = deadHosts(filepath.Join(base, "missing"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
