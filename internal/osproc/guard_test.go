//go:build linux

// Linux: a guard is this program, found in /proc, and a subreaper.

package osproc

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A host with a guard leaves nothing, however it dies: no process, no file, no guard.
func TestAGuardSweeps(t *testing.T) {
	t.Parallel()
	for _, died := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(died.String(), func(t *testing.T) {
			t.Parallel()
			temp, state, token := t.TempDir(), t.TempDir(), newToken()
			cmd, out := hostWith(t, temp, state+guarded, token, "session")
			_, err := out.ReadString('\n')
			require.NoError(t, err)
			require.Len(t, withToken(token), 3)
			require.Len(t, files(t, temp), 1)
			require.Len(t, guardsOf(state), 1)
			for _, pid := range guardsOf(state) { // as those of a service manager do
				require.NoError(t, syscall.Kill(pid, syscall.SIGTERM))
			}
			require.NoError(t, cmd.Process.Signal(died))
			_ = cmd.Wait()
			require.Eventually(t, func() bool {
				left, err := os.ReadDir(state)
				return err == nil && len(left) == 0 && len(withToken(token))+len(files(t, temp))+len(guardsOf(state)) == 0
			}, waitLimit, 10*time.Millisecond)
		})
	}
}

// guardsOf are the guards of a state directory.
func guardsOf(state string) (pids []int) {
	for _, pid := range allPIDs() {
		env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
		if err == nil && strings.Contains(string(env), GuardEnv+"="+state+"\x00") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// A guard lives as long as there are agents, and is started again.
func TestAGuardEndsWithTheLastAgent(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	l := NewLauncher(Config{StateDir: state, TempDir: t.TempDir(), Guard: []string{"/proc/self/exe"}})
	for range 2 {
		p, q := launchAgent(t, l, agent(newToken(), "wait")), launchAgent(t, l, agent(newToken(), "wait"))
		finish(t, p)
		assert.Len(t, guardsOf(state), 1)
		finish(t, q)
		require.Eventually(t, func() bool { return len(guardsOf(state)) == 0 }, waitLimit, 10*time.Millisecond)
	}
}

// A guard that was killed is replaced with the next agent.
func TestAGuardIsReplaced(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	l := NewLauncher(Config{StateDir: state, TempDir: t.TempDir(), Guard: []string{"/proc/self/exe"}})
	p := launchAgent(t, l, agent(newToken(), "wait"))
	first := guardsOf(state)
	require.Len(t, first, 1)
	require.NoError(t, syscall.Kill(first[0], syscall.SIGKILL))
	require.Eventually(t, func() bool {
		l.guard.mu.Lock()
		defer l.guard.mu.Unlock()
		return l.guard.in == nil
	}, waitLimit, time.Millisecond)
	q := launchAgent(t, l, agent(newToken(), "wait"))
	second := guardsOf(state)
	require.Len(t, second, 1)
	assert.NotEqual(t, first, second)
	finish(t, p)
	assert.Equal(t, second, guardsOf(state))
	finish(t, q)
	require.Eventually(t, func() bool { return len(guardsOf(state)) == 0 }, waitLimit, 10*time.Millisecond)
}

func TestWhatIsNoGuard(t *testing.T) {
	t.Parallel()
	for _, argv := range [][]string{{"/bin/echo", "hello"}, {"/bin/false"}, {"/nowhere"}} {
		temp, state := t.TempDir(), t.TempDir()
		_, err := NewLauncher(Config{StateDir: state, TempDir: temp, Guard: argv}).Start(testContext(t), agent(newToken(), "wait"))
		var start *StartError
		require.ErrorAs(t, err, &start, argv)
		assert.Equal(t, "guard", start.Op)
		left, err := os.ReadDir(state)
		require.NoError(t, err)
		assert.Empty(t, left)
	}
}
