package embedded

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/transport"
	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/backend"
	"github.com/agent-troupe/troupe/internal/kernel"
)

func TestSleepsThatAreBlocked(t *testing.T) {
	t.Parallel()
	for command, why := range map[string]string{
		"sleep 25": "standalone sleep 25.", " sleep 32": "standalone sleep 32.", "sleep 33 # w": "standalone sleep 33.",
		"sleep 30; echo x": "sleep 30 followed by: echo x.", "sleep 30 && echo x": "sleep 30 followed by: echo x.", "sleep 30 & echo x": "sleep 30 followed by: echo x.", "sleep 30 | cat": "sleep 30 followed by: cat.",
	} {
		assert.True(t, strings.HasPrefix(blockedSleep(agent.Object{"command": command}, true), "Blocked: "+why+" To wait"), command)
		assert.Empty(t, blockedSleep(agent.Object{"command": command}, false), command)
		assert.Empty(t, blockedSleep(agent.Object{"command": command, "run_in_background": true}, true), command)
	}
	for _, command := range []string{"sleep 20", "sleep 1m", "sleep 30.5", "sleep 12 && echo x", "true; sleep 31", "echo sleep 30", "sleep", "sleep $X", "until x; do sleep 30; done", "sleep (("} {
		assert.Empty(t, blockedSleep(agent.Object{"command": command}, true), command)
	}
}

func TestDurationsInWords(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration][2]string{
		500 * time.Millisecond: {"0s", "0s"}, 1500 * time.Millisecond: {"1s", "1s"}, 90 * time.Second: {"1m 30s", "1m 30s"}, 2 * time.Minute: {"2m", "2m 0s"}, 30 * time.Minute: {"30m", "30m 0s"}, time.Hour: {"1h", "1h 0m 0s"},
	} {
		assert.Equal(t, want, [2]string{shortDuration(d), longDuration(d)})
	}
}

// Output is bounded in memory and on disk, and the command is not held up by that.
func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	var o output
	chunk := make([]byte, 1<<20)
	for range 20 {
		n, err := o.Write(chunk)
		require.NoError(t, err)
		require.Len(t, chunk, n)
	}
	assert.Len(t, o.bytes(), maxKept)
	path := filepath.Join(t.TempDir(), "out")
	before, err := o.spill(path)
	require.NoError(t, err)
	assert.Len(t, before, maxKept)
	assert.Empty(t, o.bytes())
	for range 80 {
		_, err := o.Write(chunk)
		require.NoError(t, err)
	}
	o.close()
	_, err = o.Write(chunk)
	require.NoError(t, err, "what comes late is lost")
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.InDelta(t, maxOnDisk, info.Size(), 1<<21)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.True(t, strings.HasSuffix(string(text), "The rest of it is not kept.]\n"))
}

func TestWhatAnExitCodeMeans(t *testing.T) {
	t.Parallel()
	for command, meaning := range map[string]string{
		"grep x a": "No matches found", "cat a | grep x": "No matches found", "egrep x a": "No matches found", "git grep x": "No matches found", "true && diff a b": "Files differ", "git diff --no-index a b": "Files differ",
		"test -f x": "Condition is false", "[ -f x ]": "Condition is false", "find x": "Some directories were inaccessible", "grep x a; true": "", "cmp a b": "", "ls x": "", "": "", ";": "", "diff a b | head; false": "",
	} {
		assert.Equal(t, meaning, noError(command, 1), command)
		assert.Empty(t, noError(command, 2))
	}
}

// ~/.bashrc is read once: its functions, aliases and variables, but no keys and no PATH.
func TestTheUsersBashrc(t *testing.T) {
	t.Parallel()
	s := newShell(t, "export FROM_RC='a\nb'\nexport ANTHROPIC_API_KEY=secret\nalias hi='echo hi'\nfn() { echo fn; }\nPATH=/rc\necho noise\n")
	path := s.snapshot(context.Background())
	require.NotEmpty(t, path)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Contains(t, string(text), `export FROM_RC=$'a\nb'`)
	assert.Contains(t, string(text), "alias hi='echo hi'")
	assert.Contains(t, string(text), "fn ()")
	for _, not := range []string{"secret", "PATH", "noise"} {
		assert.NotContains(t, string(text), not)
	}
	assert.Equal(t, path, s.snapshot(context.Background()))
	for _, bad := range []string{"exit 0\n", "kill -9 $$\n"} {
		assert.Empty(t, newShell(t, bad).snapshot(context.Background()), bad)
	}
}

// The sessions of a backend read ~/.bashrc once, in the home directory, until it changes. One that
// gives up leaves it to another; what takes too long for one is not tried by all.
func TestSessionsShareTheBashrc(t *testing.T) {
	t.Parallel()
	const rc = "echo read >>~/times; pwd >~/where; export FROM_RC=1\n"
	one := newShell(t, rc)
	one.startups = &startups{}
	another := func() *hands {
		h := newShell(t, "")
		h.env, h.startups = append(slices.Clone(one.env), "TROUPE_TASK="+h.root), one.startups
		return h
	}
	times := func() int {
		text, err := os.ReadFile(filepath.Join(one.root, "times"))
		require.NoError(t, err)
		return strings.Count(string(text), "read")
	}
	gone, leave := context.WithCancel(context.Background())
	leave()
	assert.Empty(t, another().snapshot(gone))
	var all sync.WaitGroup
	paths := make([]string, 8)
	for i := range paths {
		all.Go(func() { paths[i] = another().snapshot(context.Background()) })
	}
	all.Wait()
	for i, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Contains(t, string(text), "export FROM_RC=1")
		assert.Equal(t, i, slices.Index(paths, path), "each has its file")
	}
	assert.Equal(t, 1, times())
	where, err := os.ReadFile(filepath.Join(one.root, "where"))
	require.NoError(t, err)
	assert.Equal(t, one.root+"\n", string(where))

	other := another()
	other.env = append(slices.Clone(one.env), "MORE=1")
	require.NotEmpty(t, other.snapshot(context.Background()))
	assert.Equal(t, 2, times(), "another environment")
	require.NoError(t, os.WriteFile(filepath.Join(one.root, ".bashrc"), []byte(rc+"exit 0\n"), 0o600))
	for range 3 {
		assert.Empty(t, another().snapshot(context.Background()))
	}
	assert.Equal(t, 3, times(), "it has changed, and ends the shell")

	require.NoError(t, os.WriteFile(filepath.Join(one.root, ".bashrc"), []byte("[ -e ~/begun ] || { >~/begun; while :; do sleep 1; done; }\n"+rc), 0o600))
	gone, leave = context.WithCancel(context.Background())
	all.Go(func() { assert.Empty(t, another().snapshot(gone)) })
	require.Eventually(t, func() bool { _, err := os.Stat(filepath.Join(one.root, "begun")); return err == nil }, time.Minute, time.Millisecond)
	all.Go(func() { assert.NotEmpty(t, another().snapshot(context.Background()), "the one that read it has left") })
	leave()
	all.Wait()
}

// newShell are hands whose home has that ~/.bashrc.
func newShell(t *testing.T, bashrc string) *hands {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(root, ".bashrc"), []byte(bashrc), 0o600))
	exec, clock := kernel.GoExecutor{}, kernel.NewClock(nil)
	seams := backend.Seams{Rand: kernel.NewRand(nil), Clock: clock, Exec: exec, Spawner: transport.NewProcessSpawner(transport.ProcessConfig{Clock: clock, Exec: exec, Rand: kernel.NewRand(nil)})}
	h := newHands(agent.Launch{Dir: root, Env: []string{"HOME=" + root, "TMPDIR=" + root, "PATH=" + os.Getenv("PATH")}}, seams, func(name string) bool { return name == "ANTHROPIC_API_KEY" })
	t.Cleanup(h.remove)
	return h
}
