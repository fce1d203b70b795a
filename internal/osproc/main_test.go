//go:build linux

// Linux: the tests start this program by /proc/self/exe.

package osproc

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// agentBinary is the badly behaved child, built once for the run.
var agentBinary string

// waitLimit bounds every wait of the tests; it is reached only by a failure.
const waitLimit = 2 * time.Minute

func TestMain(m *testing.M) {
	if os.Getenv(GuardEnv) != "" {
		if err := Guard(os.Stdin, os.Stdout); err != nil {
			panic(err)
		}
		return
	}
	if mode := os.Getenv("OSPROC_TEST_HOST"); mode != "" {
		hostMain(mode)
		return
	}
	dir, err := os.MkdirTemp("", "osproc-test-")
	if err != nil {
		panic(err)
	}
	agentBinary = filepath.Join(dir, "agent")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", agentBinary, "./testdata/agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		panic(fmt.Sprintf("build of the test agent: %v\n%s", err, out))
	}
	code := m.Run()
	err = goleak.Find()
	for range 20 { // on a busy machine it takes longer until all have ended
		if err == nil {
			break
		}
		err = goleak.Find()
	}
	if err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// fewer is n, or short of them with -short.
func fewer(n, short int) int {
	if testing.Short() {
		return short
	}
	return n
}

// dieOfIgnored ends the program on signals that it would ignore, since whoever
// started the tests did: nohup, or a script that runs them in the background.
func dieOfIgnored(all ...os.Signal) {
	for _, s := range all {
		if signal.Ignored(s) {
			died := make(chan os.Signal, 1)
			signal.Notify(died, s)
			go func() {
				<-died
				os.Exit(1)
			}()
		}
	}
}

// guarded, behind its state directory, gives a host a guard.
const guarded = "?guarded"

// hostMain is the test binary in the role of a host program.
func hostMain(mode string) {
	dieOfIgnored(syscall.SIGHUP, syscall.SIGINT)
	ctx := context.Background()
	state, guards := strings.CutSuffix(os.Getenv("OSPROC_TEST_STATE"), guarded)
	cfg := Config{TempDir: os.Getenv("OSPROC_TEST_TEMP"), StateDir: state}
	if guards {
		cfg.Guard = []string{"/proc/self/exe"}
	}
	l := NewLauncher(cfg)
	c := Command{Path: os.Args[1], Args: os.Args[2:], Env: os.Environ()}
	if os.Getenv("OSPROC_TEST_TEMP") != "" {
		c.Files = []File{{Name: "secret", Data: []byte("s3cret")}}
	}
	switch mode {
	case "killed", "killed, term": // starts an agent and waits to be killed
		if mode != "killed" {
			c.HostDeath = syscall.SIGTERM
		}
		p, err := l.Start(ctx, c)
		if err != nil {
			panic(err)
		}
		awaitReady(p)
		fmt.Println(p.Marker())
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "subreaper": // adopts orphans; prints how many children it has in the end
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			panic(err)
		}
		p, err := l.Start(ctx, c)
		if err != nil {
			panic(err)
		}
		awaitReady(p)
		_ = p.Kill()
		<-p.Exited()
		if _, err := p.Sweep(ctx); err != nil {
			panic(err)
		}
		if _, err := p.Reap(); err != nil {
			panic(err)
		}
		fmt.Println(len(childrenOf(os.Getpid())))
	}
}

func awaitReady(p *Process) {
	line, err := bufio.NewReader(p.Stdout()).ReadString('\n')
	if err != nil || line != "ready\n" {
		panic(fmt.Sprintf("agent said %q: %v", line, err))
	}
}

var tokens atomic.Int64

// newToken returns an argument that no other process of the machine has.
func newToken() string { return fmt.Sprintf("tok-%d-%d.", os.Getpid(), tokens.Add(1)) }

// withToken looks for live processes from outside: by their arguments, never by
// the marker.
func withToken(token string) (pids []int) {
	for _, pid := range allPIDs() {
		if strings.Contains(argsOf(pid), token) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// argsOf reads from any thread: a process whose main thread is dead shows its
// arguments only there.
func argsOf(pid int) string {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid)) // a name below would list each directory
	for _, dir := range threads {
		if line, err := os.ReadFile(filepath.Join(dir, "cmdline")); err == nil && len(line) > 0 {
			return string(line)
		}
	}
	return ""
}

func allPIDs() (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		panic(err)
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// childrenOf returns the live and dead children of a process.
func childrenOf(parent int) (lines []string) {
	for _, pid := range allPIDs() {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		if st, err := parseStat(line); err == nil && st.parent == parent {
			lines = append(lines, string(line))
		}
	}
	return lines
}

func openFDs(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}

func threads(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	for line := range strings.Lines(string(status)) {
		if n, ok := strings.CutPrefix(line, "Threads:"); ok {
			count, err := strconv.Atoi(strings.TrimSpace(n))
			require.NoError(t, err)
			return count
		}
	}
	t.Fatal("no Threads line in /proc/self/status")
	return 0
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	t.Cleanup(cancel)
	return ctx
}

// agent is the command that runs the test agent.
func agent(token, mode string, args ...string) Command {
	return Command{Path: agentBinary, Args: append([]string{token, mode}, args...), Env: []string{"PATH=/usr/bin:/bin"}}
}

// launch starts the test agent; the test's end makes sure that it is gone.
func launchAgent(t *testing.T, l *Launcher, c Command) *Process {
	t.Helper()
	p, err := l.Start(testContext(t), c)
	require.NoError(t, err)
	t.Cleanup(func() { finish(t, p) })
	return p
}

// finish is the end of every close ladder.
func finish(t *testing.T, p *Process) ExitStatus {
	t.Helper()
	if err := p.Kill(); err != nil {
		assert.ErrorIs(t, err, ErrExited)
	}
	awaitExit(t, p)
	left, err := p.Sweep(testContext(t))
	assert.NoError(t, err)
	assert.Empty(t, left)
	st, err := p.Reap()
	assert.NoError(t, err)
	return st
}

func awaitExit(t *testing.T, p *Process) {
	t.Helper()
	select {
	case <-p.Exited():
	case <-testContext(t).Done():
		t.Fatal("the leader did not exit")
	}
}

func readAll(t *testing.T, r ReadPipe) string {
	t.Helper()
	require.NoError(t, r.SetReadDeadline(time.Now().Add(waitLimit)))
	b, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(b)
}

func requireReady(t *testing.T, p *Process) {
	t.Helper()
	require.NoError(t, p.Stdout().SetReadDeadline(time.Now().Add(waitLimit)))
	line := make([]byte, len("ready\n")) // and no more: another may follow
	_, err := io.ReadFull(p.Stdout(), line)
	require.NoError(t, err)
	require.Equal(t, "ready\n", string(line))
}

// eventually polls cond on the test's own goroutine, so that cond may count
// goroutines.
func eventually(t *testing.T, cond func() bool, what string) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(waitLimit); !cond(); <-tick.C {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// awaitIdle waits until a launcher has given back its thread and its tasks.
func awaitIdle(t *testing.T, l *Launcher) {
	t.Helper()
	eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.sweeper.mu.Lock()
		defer l.sweeper.mu.Unlock()
		l.exits.mu.Lock()
		defer l.exits.mu.Unlock()
		return l.live == 0 && len(l.leaders) == 0 && !l.running && !l.sweeper.running && l.exits.set == nil
	}, "the launcher is not idle")
}

func isAlive(pid int) bool { return syscall.Kill(pid, 0) == nil }
