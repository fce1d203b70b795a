//go:build linux

// Linux: pidfds, process groups and /proc.

package osproc

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/agent-troupe/troupe/internal/kernel"
)

func TestExitStatus(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		mode, arg string
		want      ExitStatus
		text      string
	}{
		{"exit", "0", ExitStatus{}, "exit status 0"},
		{"exit", "3", ExitStatus{Code: 3}, "exit status 3"},
		{"die", "15", ExitStatus{Code: -1, Signal: syscall.SIGTERM}, "signal: terminated"},
		{"die", "9", ExitStatus{Code: -1, Signal: syscall.SIGKILL}, "signal: killed"},
	} {
		for _, noPidfd := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %s no pidfd %v", tc.mode, tc.arg, noPidfd), func(t *testing.T) {
				t.Parallel()
				l := NewLauncher(Config{})
				l.noPidfd = noPidfd
				p := launchAgent(t, l, agent(newToken(), tc.mode, tc.arg))
				awaitExit(t, p)
				st, err := p.Reap()
				require.NoError(t, err)
				assert.Equal(t, tc.want, st)
				assert.Equal(t, tc.text, st.String())
				again, err := p.Reap()
				require.NoError(t, err)
				assert.Equal(t, st, again, "a second Reap says the same")
			})
		}
	}
}

func TestOutputBeforeExitIsReadableAfterIt(t *testing.T) {
	t.Parallel()
	p := launchAgent(t, NewLauncher(Config{}), agent(newToken(), "burst", "60000"))
	awaitExit(t, p)
	out := readAll(t, p.Stdout())
	assert.Len(t, out, 60003)
	assert.True(t, strings.HasSuffix(out, "END"))
}

func TestStreams(t *testing.T) {
	t.Parallel()
	p := launchAgent(t, NewLauncher(Config{}), agent(newToken(), "echo"))
	_, err := io.WriteString(p.Stdin(), "to and fro")
	require.NoError(t, err)
	require.NoError(t, p.Stdin().Close())
	assert.Equal(t, "to and fro", readAll(t, p.Stdout()))
	assert.Empty(t, readAll(t, p.Stderr()))
	awaitExit(t, p)
	st, err := p.Reap()
	require.NoError(t, err)
	assert.Zero(t, st.Code)
}

// TestOutputHeld asks the pipes themselves, whatever is unread in them.
func TestOutputHeld(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	o := &output{File: r}
	assert.True(t, o.held())
	_, err = w.WriteString("unread")
	require.NoError(t, err)
	assert.True(t, o.held())
	require.NoError(t, w.Close())
	assert.False(t, o.held(), "what is unread holds nothing")
	assert.Equal(t, "unread", readAll(t, r))
	require.NoError(t, o.Close())
	assert.False(t, o.held())
	assert.False(t, new(output).held())
}

func TestReapBeforeExitIsRefused(t *testing.T) {
	t.Parallel()
	p := launchAgent(t, NewLauncher(Config{}), agent(newToken(), "wait"))
	_, err := p.Reap()
	assert.ErrorIs(t, err, ErrRunning)
}

func TestSignalAfterReapIsNoOp(t *testing.T) {
	t.Parallel()
	p := launchAgent(t, NewLauncher(Config{}), agent(newToken(), "wait"))
	require.NoError(t, p.Kill())
	awaitExit(t, p)
	require.NoError(t, p.Signal(syscall.SIGTERM), "the exited leader still holds its number")
	_, err := p.Reap()
	require.NoError(t, err)
	assert.ErrorIs(t, p.Signal(syscall.SIGTERM), ErrExited)
	assert.ErrorIs(t, p.Kill(), ErrExited)
}

// A program that waits for any child takes the leader's number away behind our
// back.
func TestLeaderCollectedByOthersIsNotSignalled(t *testing.T) {
	t.Parallel()
	p, err := NewLauncher(Config{}).Start(testContext(t), agent(newToken(), "exit", "0"))
	require.NoError(t, err)
	awaitExit(t, p)
	_, err = syscall.Wait4(p.PID(), nil, 0, nil)
	require.NoError(t, err)
	assert.ErrorIs(t, p.Kill(), ErrExited)
	_, err = p.Reap()
	assert.ErrorIs(t, err, ErrLost)
}

func TestSignalReachesTheGroup(t *testing.T) {
	t.Parallel()
	token := newToken()
	p := launchAgent(t, NewLauncher(Config{}), agent(token, "child"))
	requireReady(t, p)
	require.Len(t, withToken(token), 2)
	require.NoError(t, p.Signal(syscall.SIGTERM))
	awaitExit(t, p)
	require.Eventually(t, func() bool { return len(withToken(token)) == 0 }, waitLimit, time.Millisecond)
}

func TestStubbornAgentOutlivesTermNotKill(t *testing.T) {
	t.Parallel()
	p := launchAgent(t, NewLauncher(Config{}), agent(newToken(), "stubborn"))
	requireReady(t, p)
	require.NoError(t, p.Signal(syscall.SIGTERM))
	require.NoError(t, p.Signal(syscall.SIGINT))
	assert.True(t, isAlive(p.PID()))
	assert.Equal(t, syscall.SIGKILL, finish(t, p).Signal)
}

func TestReapKillsTheGroupFirst(t *testing.T) {
	t.Parallel()
	token := newToken()
	p := launchAgent(t, NewLauncher(Config{}), agent(token, "child"))
	requireReady(t, p)
	require.NoError(t, syscall.Kill(p.PID(), syscall.SIGKILL), "the leader alone")
	awaitExit(t, p)
	_, err := p.Reap()
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(withToken(token)) == 0 }, waitLimit, time.Millisecond)
}

func TestBlockedWriteAndReadAreCancelled(t *testing.T) {
	t.Parallel()
	big := make([]byte, 1<<20)
	for _, tc := range []struct {
		name   string
		block  func(*Process) error
		cancel func(*Process) error
		want   error
	}{
		{
			"write by close",
			func(p *Process) error { _, err := p.Stdin().Write(big); return err },
			func(p *Process) error { return p.Stdin().Close() }, os.ErrClosed,
		},
		{
			"write by deadline",
			func(p *Process) error { _, err := p.Stdin().Write(big); return err },
			func(p *Process) error { return p.Stdin().SetWriteDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded,
		},
		{
			"read by close",
			func(p *Process) error { _, err := p.Stderr().Read(big); return err },
			func(p *Process) error { return p.Stderr().Close() }, os.ErrClosed,
		},
		{
			"read by deadline",
			func(p *Process) error { _, err := p.Stderr().Read(big); return err },
			func(p *Process) error { return p.Stderr().SetReadDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := launchAgent(t, NewLauncher(Config{}), agent(newToken(), "wait"))
			requireReady(t, p)
			done := make(chan error, 1)
			go func() { done <- tc.block(p) }()
			require.NoError(t, tc.cancel(p))
			select {
			case err := <-done:
				assert.ErrorIs(t, err, tc.want)
			case <-testContext(t).Done():
				t.Fatal("still blocked")
			}
		})
	}
}

// Pdeathsig belongs to the launching thread. The control shows that the trap is
// there; the agents show that it is avoided.
func TestAgentsSurviveTheEndOfThreads(t *testing.T) {
	l := NewLauncher(Config{})
	var control int
	agents := make([]*Process, 4)
	var wg sync.WaitGroup
	for i := range agents {
		wg.Go(func() {
			runtime.LockOSThread() // and never unlock: the thread ends with the goroutine
			agents[i] = launchAgent(t, l, agent(newToken(), "wait"))
			requireReady(t, agents[i])
		})
	}
	endingThread(&wg, func() {
		var err error
		control, err = syscall.ForkExec(agentBinary, []string{agentBinary, newToken(), "wait"},
			&syscall.ProcAttr{Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}})
		assert.NoError(t, err)
	})
	wg.Wait()
	for range 1000 {
		wg.Go(runtime.LockOSThread)
	}
	wg.Wait()
	var ws syscall.WaitStatus
	eventually(t, func() bool {
		pid, err := syscall.Wait4(control, &ws, syscall.WNOHANG, nil)
		require.NoError(t, err)
		return pid == control
	}, "a spawn from an ordinary locked goroutine dies with its thread")
	require.Equal(t, syscall.SIGKILL, ws.Signal())
	for _, p := range agents {
		select {
		case <-p.Exited():
			t.Error("an agent died with a thread")
		default:
			assert.True(t, isAlive(p.PID()))
		}
	}
}

// endingThread runs fn on a thread that ends after it. The main thread never
// does, so it is held back while another is found.
func endingThread(wg *sync.WaitGroup, fn func()) {
	wg.Go(func() {
		runtime.LockOSThread()
		if unix.Gettid() != os.Getpid() {
			fn()
			return
		}
		var other sync.WaitGroup
		endingThread(&other, fn)
		other.Wait()
	})
}

// host runs the test binary as a host of one agent.
func host(t *testing.T, mode string, agentArgs ...string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", append([]string{agentBinary}, agentArgs...)...)
	cmd.Env = append(os.Environ(), "OSPROC_TEST_HOST="+mode)
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

// What a host's death leaves depends on the agent and on the signal that the
// kernel sends it, never on how the host died. A later host can sweep the rest.
func TestHostDies(t *testing.T) {
	t.Parallel()
	for _, died := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		for _, tc := range []struct {
			agent, mode string
			lived, left int // besides the host
		}{
			{"wait", "killed", 1, 0},
			{"wait", "killed, term", 1, 0},
			{"session", "killed", 2, 1},
			{"session", "killed, term", 2, 1},
			{"tidy", "killed", 2, 1}, // the child is in another session
			{"tidy", "killed, term", 2, 0},
			{"stubborn", "killed", 1, 0},
			{"stubborn", "killed, term", 1, 1},
		} {
			t.Run(fmt.Sprintf("%v, %s, %s", died, tc.agent, tc.mode), func(t *testing.T) {
				t.Parallel()
				token := newToken()
				cmd, out := host(t, tc.mode, token, tc.agent)
				marker, err := out.ReadString('\n')
				require.NoError(t, err)
				require.Len(t, withToken(token), 1+tc.lived)
				require.NoError(t, cmd.Process.Signal(died))
				_ = cmd.Wait()
				require.Eventually(t, func() bool { return len(withToken(token)) == tc.left }, waitLimit, time.Millisecond)

				left, err := NewLauncher(Config{}).SweepMarker(testContext(t), strings.TrimSpace(marker))
				require.NoError(t, err)
				assert.Empty(t, left)
				assert.Empty(t, withToken(token))
			})
		}
	}
}

func TestSweepMarkerRefusesOtherNames(t *testing.T) {
	t.Parallel()
	for _, marker := range []string{"", "PATH", markerPrefix, markerPrefix + "1=1"} {
		_, err := NewLauncher(Config{}).SweepMarker(testContext(t), marker)
		assert.Error(t, err, marker)
	}
}

// A host that is pid 1 of a container, or a subreaper, inherits the orphans.
func TestAdoptedOrphansAreCollected(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"child", "session"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			token := newToken()
			_, out := host(t, "subreaper", token, mode)
			line, err := out.ReadString('\n')
			require.NoError(t, err)
			assert.Equal(t, "0\n", line, "children of the host in the end")
		})
	}
}

func TestNothingLeaks(t *testing.T) {
	l := NewLauncher(Config{})
	cycle := func(mode string) {
		p, err := l.Start(testContext(t), agent(newToken(), mode))
		require.NoError(t, err)
		requireReady(t, p)
		finish(t, p)
	}
	cycle("wait") // whatever is made once, is made now
	awaitIdle(t, l)
	fds, goroutines := openFDs(t), runtime.NumGoroutine()
	for range fewer(10, 3) {
		for _, mode := range []string{"wait", "child", "session", "orphan"} {
			cycle(mode)
		}
	}
	eventually(t, func() bool {
		return openFDs(t) <= fds && runtime.NumGoroutine() <= goroutines && len(childrenOf(os.Getpid())) == 0
	}, "descriptors, goroutines or children are left")
	awaitIdle(t, l)
}

func TestManyProcessesShareThreadsAndGoroutines(t *testing.T) {
	n := fewer(300, 60)
	l := NewLauncher(Config{})
	before, goroutines, fds := threads(t), runtime.NumGoroutine(), openFDs(t)
	procs := make([]*Process, n)
	for i := range procs {
		var err error
		procs[i], err = l.Start(testContext(t), agent(newToken(), "wait"))
		require.NoError(t, err)
	}
	assert.Less(t, threads(t), before+30)
	assert.LessOrEqual(t, runtime.NumGoroutine(), goroutines+4, "launching thread, exit watcher, no more")
	assert.LessOrEqual(t, openFDs(t), fds+4*n+4, "three pipes and a pidfd each")
	var wg sync.WaitGroup
	for _, p := range procs {
		wg.Go(func() { finish(t, p) })
	}
	wg.Wait()
	assert.Empty(t, childrenOf(os.Getpid()))
}

func TestTempFiles(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	l := NewLauncher(Config{TempDir: parent})
	c := agent(newToken(), "args", "--config={{file:mcp.json}}", "{{file:unknown}}")
	c.Files = []File{{Name: "mcp.json", Data: []byte("{}")}, {Name: "second", Data: []byte("2")}}
	c.Env = append(c.Env, "SECOND={{file:second}}")
	p := launchAgent(t, l, c)
	out := readAll(t, p.Stdout())

	dirs, err := os.ReadDir(parent)
	require.NoError(t, err)
	require.Len(t, dirs, 1)
	hosts, err := os.ReadDir(filepath.Join(parent, dirs[0].Name()))
	require.NoError(t, err)
	require.Len(t, hosts, 1)
	dir := filepath.Join(parent, dirs[0].Name(), hosts[0].Name())
	assert.Contains(t, out, fmt.Sprintf(`["--config=%s/mcp.json" "{{file:unknown}}"]`, dir))
	st, err := os.Stat(dir)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), st.Mode().Perm())
	for _, f := range c.Files {
		st, err := os.Stat(filepath.Join(dir, f.Name))
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), st.Mode().Perm())
	}
	finish(t, p)
	dirs, err = os.ReadDir(parent)
	require.NoError(t, err)
	assert.Empty(t, dirs)
}

func TestChildEnvironmentAndDirectory(t *testing.T) {
	t.Parallel()
	dir, l := t.TempDir(), NewLauncher(Config{})
	c := agent(newToken(), "env")
	c.Env = []string{"A=1", markerPrefix + "0_outer=1"}
	p := launchAgent(t, l, c)
	assert.Equal(t, "A=1\n"+markerPrefix+"0_outer=1\n"+p.Marker()+"=1\n", readAll(t, p.Stdout()))

	c = agent(newToken(), "args")
	c.Dir = dir
	p = launchAgent(t, l, c)
	assert.Equal(t, "[]\n"+dir+"\n", readAll(t, p.Stdout()))
}

func TestMarkersOfTheHostAreHandedDown(t *testing.T) {
	t.Parallel()
	outer := markerPrefix + "1_a=1"
	host := hostMarkers([]string{"HOME=/", outer, "X=" + outer})
	require.Equal(t, []string{outer}, host)
	inner := markerPrefix + "2_b"
	assert.Equal(t, []string{"A=1", inner + "=1", outer}, withMarkers([]string{"A=1"}, host, inner))
	assert.Equal(t, []string{outer, inner + "=1"}, withMarkers([]string{outer}, host, inner), "not twice")
	assert.Equal(t, []string{inner + "=1", outer}, withMarkers(nil, host, inner), "even from nothing")
}

func TestMarkersDifferForEqualSeeds(t *testing.T) {
	t.Parallel()
	seed := uint64(1)
	l := NewLauncher(Config{Rand: kernel.NewRand(&seed)})
	a, b := l.newMarker(), l.newMarker()
	assert.NotEqual(t, a, b)
	assert.True(t, isMarker(a))
	assert.Contains(t, a, "_"+strconv.Itoa(os.Getpid())+"_", "two hosts never draw the same")
}

// The child has the three pipes and nothing that the host opened.
func TestNoDescriptorIsInherited(t *testing.T) {
	t.Parallel()
	want := []string{"0", "1", "2", "3"} // 3 is the directory that ls reads
	for fd := 3; fd < 1024; fd++ {       // what the host itself was started with
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			want = append(want, strconv.Itoa(fd))
		}
	}
	p := launchAgent(t, NewLauncher(Config{}), Command{
		Names: []string{"ls"}, Args: []string{"/proc/self/fd"}, Env: []string{"PATH=/usr/bin:/bin"},
	})
	assert.ElementsMatch(t, want, strings.Fields(readAll(t, p.Stdout())))
}

func TestExitWatcherFallsBackWithoutPoller(t *testing.T) {
	t.Parallel()
	l := NewLauncher(Config{})
	p := launchAgent(t, l, agent(newToken(), "wait"))
	l.exits.mu.Lock()
	set := l.exits.set
	l.exits.mu.Unlock()
	l.exits.giveUp(set)
	require.NoError(t, p.Kill())
	awaitExit(t, p)
}

func TestKillGroupRefusesEverybody(t *testing.T) {
	t.Parallel()
	for _, pgid := range []int{-1, 0, 1} {
		assert.Error(t, killGroup(pgid, unix.SIGKILL))
	}
}
