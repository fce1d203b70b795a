//go:build linux

package osproc

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/kernel"
)

func write(t *testing.T, path, text string, mode os.FileMode) string {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), mode))
	return path
}

func TestStartErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	require.NoError(t, os.Mkdir(bin, 0o755))
	plain := write(t, filepath.Join(bin, "plain"), "data", 0o644)
	noShebang := write(t, filepath.Join(bin, "noshebang"), "data", 0o755)
	noInterp := write(t, filepath.Join(bin, "nointerp"), "#!/nowhere/node\n", 0o755)
	script := write(t, filepath.Join(bin, "cli.js"), "", 0o644)
	path := "PATH=relative::" + bin + ":" + dir

	for _, tc := range []struct {
		name     string
		c        Command
		op, path string
		is       error
		searched []string
		says     string
	}{
		{"name not found", Command{Path: "claude", Env: []string{path}}, "lookup", "claude", fs.ErrNotExist, []string{bin, dir}, "install it, or give its path"},
		{"no name found", Command{Names: []string{"claude", "qodercli"}, Env: []string{path}}, "lookup", "claude|qodercli", fs.ErrNotExist, []string{bin, dir}, "install it"},
		{"nothing named", Command{Env: []string{path}}, "lookup", "", fs.ErrNotExist, nil, ""},
		{"environment without PATH", Command{Path: "claude", Env: []string{"A=1"}}, "lookup", "claude", ErrEmptyPath, nil, "set PATH"},
		{"no environment", Command{Path: "claude"}, "lookup", "claude", ErrEmptyPath, nil, "set PATH"},
		{"only relative PATH", Command{Path: "claude", Env: []string{"PATH=bin:."}}, "lookup", "claude", ErrEmptyPath, nil, "set PATH"},
		{"file missing", Command{Path: "/nowhere/claude"}, "lookup", "/nowhere/claude", fs.ErrNotExist, nil, "give its path"},
		{"file not executable", Command{Path: plain}, "lookup", plain, fs.ErrPermission, nil, "make it executable"},
		{"name not executable", Command{Path: "plain", Env: []string{path}}, "lookup", "plain", fs.ErrPermission, []string{bin, dir}, "make it executable"},
		{"a directory", Command{Path: bin}, "lookup", bin, syscall.EISDIR, nil, ""},
		{"interpreter missing", Command{Path: script, Interpreter: []string{"deno"}, Env: []string{path}}, "lookup", "deno", fs.ErrNotExist, []string{bin, dir}, "install it"},
		{"script missing", Command{Path: "/nowhere/cli.js", Interpreter: []string{"sh"}, Env: []string{"PATH=/bin"}}, "lookup", "/nowhere/cli.js", fs.ErrNotExist, nil, ""},
		{"working directory missing", Command{Path: agentBinary, Dir: "/nowhere"}, "chdir", agentBinary, fs.ErrNotExist, nil, "existing directory"},
		{"working directory first", Command{Path: "claude", Dir: "/nowhere"}, "chdir", "claude", fs.ErrNotExist, nil, `"/nowhere"`},
		{"working directory is a file", Command{Path: agentBinary, Dir: plain}, "chdir", agentBinary, syscall.ENOTDIR, nil, "existing directory"},
		{"not a program", Command{Path: noShebang}, "spawn", noShebang, syscall.ENOEXEC, nil, "#! line"},
		{"interpreter of the script missing", Command{Path: noInterp}, "spawn", noInterp, fs.ErrNotExist, nil, "interpreter of its #! line"},
		{"argument too long", Command{Path: agentBinary, Args: []string{"a", strings.Repeat("b", 200_000)}}, "spawn", agentBinary, syscall.E2BIG, nil, "number 2, 200000 bytes"},
		{"variable too long", Command{Path: agentBinary, Env: []string{"A=1", "TOKEN=s3cret" + strings.Repeat("b", 200_000)}}, "spawn", agentBinary, syscall.E2BIG, nil, "the longest variable is TOKEN, 200012 bytes"},
		{"NUL in an argument", Command{Path: agentBinary, Args: []string{"a", "b\x00c"}}, "argv", agentBinary, syscall.EINVAL, nil, "argument 2"},
		{"NUL in a variable", Command{Path: agentBinary, Env: []string{"KEY=s3cret\x00"}}, "argv", agentBinary, syscall.EINVAL, nil, `"KEY"`},
		{"malformed variable", Command{Path: agentBinary, Env: []string{"s3cret"}}, "argv", agentBinary, syscall.EINVAL, nil, "entry 1"},
		{"bad file name", Command{Path: agentBinary, Files: []File{{Name: "../x"}}}, "files", agentBinary, nil, nil, "not a plain name"},
		{"same file twice", Command{Path: agentBinary, Files: []File{{Name: "x"}, {Name: "x"}}}, "files", agentBinary, fs.ErrExist, nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			temp := t.TempDir()
			l := NewLauncher(Config{TempDir: temp})
			if tc.c.Files == nil {
				tc.c.Files = []File{{Name: "secret", Data: []byte("s3cret")}}
			}
			p, err := l.Start(testContext(t), tc.c)
			require.Nil(t, p)
			var se *StartError
			require.ErrorAs(t, err, &se)
			assert.Equal(t, tc.op, se.Op)
			assert.Equal(t, tc.path, se.Path)
			assert.Equal(t, tc.searched, se.Searched)
			assert.Equal(t, tc.c.Dir, se.Dir)
			if tc.is != nil {
				assert.ErrorIs(t, err, tc.is)
			}
			assert.Contains(t, err.Error(), tc.says)
			assert.NotContains(t, err.Error(), "s3cret")
			assert.False(t, se.Retryable())
			left, err := os.ReadDir(temp)
			require.NoError(t, err)
			assert.Empty(t, left, "temporary files")
		})
	}
}

func TestStartErrorWhileTheFileIsWritten(t *testing.T) {
	t.Parallel()
	image, err := os.ReadFile(agentBinary)
	require.NoError(t, err)
	path := write(t, filepath.Join(t.TempDir(), "agent"), string(image), 0o755)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	_, err = NewLauncher(Config{}).Start(testContext(t), Command{Path: path})
	var se *StartError
	require.ErrorAs(t, err, &se)
	require.ErrorIs(t, err, syscall.ETXTBSY)
	assert.True(t, se.Retryable())
	assert.Contains(t, err.Error(), "try again")

	// A child that is between its fork and its exec has the file for a moment.
	clock := &closing{Clock: kernel.NewClock(nil), file: f}
	p, err := NewLauncher(Config{Clock: clock}).Start(testContext(t), Command{Path: path, Args: []string{newToken(), "exit", "0"}})
	require.NoError(t, err)
	assert.EqualValues(t, 1, clock.pauses.Load(), "with one pause")
	<-p.Exited()
	_, err = p.Reap()
	require.NoError(t, err)
}

// closing is a clock with whose first timer a file is closed.
type closing struct {
	kernel.Clock
	file   *os.File
	pauses atomic.Int32
}

func (c *closing) AfterFunc(d time.Duration, fn func()) kernel.Timer {
	if d < textBusy {
		c.pauses.Add(1)
		_ = c.file.Close()
	}
	return c.Clock.AfterFunc(d, fn)
}

func TestStartErrorsAtTheDescriptorLimit(t *testing.T) {
	l := NewLauncher(Config{})
	var old syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old))
	fds := openFDs(t)
	for spare := range 12 { // the limit strikes in another place each time
		top, err := os.Open("/dev/null")
		require.NoError(t, err)
		limit := uint64(top.Fd()) + uint64(spare)
		_ = top.Close()
		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: limit, Max: old.Max}))
		p, err := l.Start(context.Background(), agent(newToken(), "wait"))
		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old))
		if err == nil {
			finish(t, p)
			continue
		}
		var se *StartError
		require.ErrorAs(t, err, &se)
		require.ErrorIs(t, err, syscall.EMFILE)
		assert.True(t, se.Retryable())
		assert.Contains(t, err.Error(), "ulimit -n")
	}
	eventually(t, func() bool { return openFDs(t) <= fds }, "descriptors are left")
}

func TestRetryable(t *testing.T) {
	t.Parallel()
	for errno, want := range map[syscall.Errno]bool{
		syscall.EAGAIN: true, syscall.ENOMEM: true, syscall.ENFILE: true,
		syscall.ENOENT: false, syscall.EACCES: false,
	} {
		assert.Equal(t, want, (&StartError{Op: "spawn", Err: errno}).Retryable(), errno)
	}
}

func TestManyFailingStartsLeakNothing(t *testing.T) {
	temp := t.TempDir()
	bad := write(t, filepath.Join(t.TempDir(), "bad"), "#!/nowhere/node\n", 0o755)
	l := NewLauncher(Config{TempDir: temp})
	commands := []Command{
		{Path: bad, Files: []File{{Name: "f"}}}, // fails in exec
		{Path: "nobody", Env: []string{"PATH=/bin"}},
		{Path: agentBinary, Dir: "/nowhere"},
		{Path: agentBinary, Args: []string{strings.Repeat("x", 200_000)}, Files: []File{{Name: "f"}}},
	}
	run := func(n int) {
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				_, err := l.Start(context.Background(), commands[i%len(commands)])
				assert.Error(t, err)
			})
		}
		wg.Wait()
	}
	run(len(commands))
	awaitIdle(t, l)
	fds, goroutines := openFDs(t), runtime.NumGoroutine()
	run(200)
	eventually(t, func() bool {
		return openFDs(t) <= fds && runtime.NumGoroutine() <= goroutines
	}, "descriptors or goroutines are left")
	assert.Empty(t, childrenOf(os.Getpid()))
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	assert.Empty(t, left)
	awaitIdle(t, l)
}

func TestStartWithEndedContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := NewLauncher(Config{}).Start(ctx, agent(newToken(), "wait"))
	assert.ErrorIs(t, err, context.Canceled)
}

// The launching thread is busy for good: the start waits no longer than its
// context.
func TestStartCancelledInTheQueue(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	l := NewLauncher(Config{TempDir: temp})
	l.running = true // by nobody
	ctx, cancel := context.WithCancelCause(context.Background())
	done := make(chan error, 1)
	c := agent(newToken(), "wait")
	c.Files = []File{{Name: "f"}}
	go func() {
		_, err := l.Start(ctx, c)
		done <- err
	}()
	require.Eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.queue) == 1
	}, waitLimit, time.Millisecond)
	reason := errors.New("no longer wanted")
	cancel(reason)
	assert.ErrorIs(t, <-done, reason)
	assert.Empty(t, l.queue)
	assert.Zero(t, l.live)
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	assert.Empty(t, left)
}

// The context ends while the fork is under way: what comes up is put down.
func TestStartAbandonedInTheSpawn(t *testing.T) {
	t.Parallel()
	for _, fails := range []bool{false, true} {
		token, l := newToken(), NewLauncher(Config{})
		n, err := l.prepare(agent(token, "session"))
		require.NoError(t, err)
		if fails {
			n.path = "/nowhere"
		}
		s := &spawn{launch: n, done: make(chan struct{})}
		l.live = 1 // as Start counts what it queues
		require.True(t, l.abandon(s))
		err = s.proc.spawn(n)
		require.Equal(t, fails, err != nil)
		s.closeChild()
		l.spawned(s, err)
		eventually(t, func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.live == 0
		}, "the launch was not disposed of")
		assert.Empty(t, withToken(token))
	}
}

func TestLookup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	require.NoError(t, os.Mkdir(one, 0o755))
	require.NoError(t, os.Mkdir(two, 0o755))
	write(t, filepath.Join(one, "tool"), "", 0o644) // there, but not executable
	write(t, filepath.Join(two, "tool"), "", 0o755)
	write(t, filepath.Join(two, "node"), "", 0o755)
	write(t, filepath.Join(dir, "cli.js"), "", 0o644)
	env := []string{"PATH=/nowhere", "PATH=" + one + ":" + two}

	for _, tc := range []struct {
		name string
		c    Command
		argv []string
	}{
		{"the first that can be executed", Command{Path: "tool"}, []string{two + "/tool"}},
		{"the first name that is there", Command{Names: []string{"claude", "tool", "node"}}, []string{two + "/tool"}},
		{"a file", Command{Path: two + "/tool"}, []string{two + "/tool"}},
		{"a file relative to the directory", Command{Path: "two/tool", Dir: dir}, []string{two + "/tool"}},
		{"a script", Command{Path: dir + "/cli.js", Interpreter: []string{"node", "--flag"}}, []string{two + "/node", "--flag", dir + "/cli.js"}},
		{"a script from PATH", Command{Path: "tool", Interpreter: []string{two + "/node"}}, []string{two + "/node", one + "/tool"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.c.Env = env
			path, argv, err := tc.c.resolve(&StartError{})
			require.NoError(t, err)
			assert.Equal(t, tc.argv[0], path)
			assert.Equal(t, tc.argv, argv)
		})
	}
}

func TestInterpreterRunsAScriptThatIsNotExecutable(t *testing.T) {
	t.Parallel()
	token := newToken()
	script := write(t, filepath.Join(t.TempDir(), "script"), "", 0o644)
	p := launchAgent(t, NewLauncher(Config{}), Command{
		Interpreter: []string{agentBinary, token, "args"}, Path: script, Args: []string{"last"},
	})
	assert.Contains(t, readAll(t, p.Stdout()), `["`+script+`" "last"]`)
}
