//go:build linux

// Linux: a guard is this program, found in /proc.

package runtime_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/internal/osproc"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// guardedEnv makes TestGuardedHost a host in a separate process. Its value is a
// guardedHost.
const guardedEnv = "TROUPE_GUARDED_HOST"

// guardedHost is a host program with a guard.
type guardedHost struct {
	Token, Agent, Script, Cwd, Temp, State string
}

// stubbornYAML is an agent that survives its host, as do its descendants: they have left
// its group and its parentage, and ignore SIGTERM. One is replaced all the time.
const stubbornYAML = `turns: [{steps: [
  {spawn: {token: TOKEN, session: true, trap_term: true}},
  {spawn: {token: TOKEN, session: true, trap_term: true, reparent: true}},
  {spawn: {token: TOKEN, session: true, trap_term: true, forks: 20ms}},
  {text: busy}, {delay: 1h}]}]
misbehave: {trap_term: true, ignore_eof: true}
`

// survivors is how many processes it has.
const survivors = 4

// TestGuardedHost is not a test but a program: a host with a guard, which is this program,
// too (TestMain).
func TestGuardedHost(t *testing.T) {
	given := os.Getenv(guardedEnv)
	if given == "" {
		return // the test is not run as a host
	}
	// The parent of the tests may have ignored these, and then Go does, too.
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(s) {
			died := make(chan os.Signal, 1)
			signal.Notify(died, s)
			go func() { <-died; os.Exit(1) }()
		}
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3) // the parent of the host is gone
	}()
	var h guardedHost
	require.NoError(t, json.Unmarshal([]byte(given), &h))
	ctx := context.Background()
	rt, err := runtime.New(runtime.Config{TempDir: h.Temp, StateDir: h.State, Guard: []string{"/proc/self/exe"}})
	require.NoError(t, err)
	s, err := rt.Open(ctx, runtime.Spec{Dialect: claude.New(), Options: session.Options{
		PathToExecutable: h.Agent, Cwd: h.Cwd, Env: map[string]string{"TROUPE_SCRIPT": h.Script},
		ExtraArgs: map[string]session.Opt[string]{"token": session.Some(h.Token)},
		// The header is a credential, so the agent gets a file.
		MCPServers: map[string]session.MCPServerConfig{"far": {Type: "http", URL: "https://mcp.example", Headers: map[string]string{"Authorization": "Bearer s3cret"}}},
	}})
	require.NoError(t, err)
	turn, err := s.Send(ctx, userText("go"))
	require.NoError(t, err)
	for m, err := range turn.Messages(ctx) {
		require.NoError(t, err)
		if protocol.TextOf(m) == "busy" {
			fmt.Println("ready")
		}
	}
}

// startGuarded starts a host, and waits until its agent and its descendants are there.
func startGuarded(t *testing.T) (host *exec.Cmd, h guardedHost) {
	t.Helper()
	h = guardedHost{Token: newToken(), Cwd: t.TempDir(), Temp: t.TempDir(), State: t.TempDir()}
	spec := processSpec(t, h.Token, stubbornYAML)
	h.Agent, h.Script = spec.Options.PathToExecutable, spec.Options.Env["TROUPE_SCRIPT"]
	given, err := json.Marshal(h)
	require.NoError(t, err)
	host = exec.Command("/proc/self/exe", "-test.run=^TestGuardedHost$", "-test.count=1")
	host.Env = append(os.Environ(), guardedEnv+"="+string(given))
	host.Stderr = os.Stderr
	_, err = host.StdinPipe()
	require.NoError(t, err)
	out, err := host.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, host.Start())
	t.Cleanup(func() { // when the test has failed
		_ = host.Process.Kill()
		killAll(t, h.Token)
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	require.Eventually(t, func() bool { return len(withToken(t, h.Token)) >= survivors }, patience, 20*time.Millisecond)
	require.NotEmpty(t, entries(t, h.Temp), "files of the agent")
	require.Len(t, withEnv(t, osproc.GuardEnv+"="+h.State+"\x00"), 1, "the guard")
	require.NotEmpty(t, withEnv(t, h.marker(host)))
	return host, h
}

// marker is in the environment of all that the host's agents are.
func (guardedHost) marker(host *exec.Cmd) string {
	return fmt.Sprintf("\x00TROUPE_LAUNCH_%d_", host.Process.Pid)
}

// left are the remains of a host: processes, found in two ways, files, and the guard.
func (h guardedHost) left(t *testing.T, host *exec.Cmd) (what []string) {
	t.Helper()
	what = append(withToken(t, h.Token), entries(t, h.Temp)...)
	what = append(what, entries(t, h.State)...)
	for _, pid := range append(withEnv(t, h.marker(host)), withEnv(t, osproc.GuardEnv+"="+h.State+"\x00")...) {
		what = append(what, fmt.Sprint("process ", pid))
	}
	return what
}

// withEnv finds live processes by a part of their environment, in which a NUL is before
// and after each variable.
func withEnv(t *testing.T, part string) (pids []int) {
	t.Helper()
	for _, name := range entries(t, "/proc") {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		env, err := os.ReadFile(filepath.Join("/proc", name, "environ"))
		if err == nil && strings.Contains("\x00"+string(env), part) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// TestGuard goes the whole way, from runtime.Config to runtime.ServeGuard: however the
// host dies, its guard ends what ignores SIGTERM and has left the agent's group, and
// removes the files.
func TestGuard(t *testing.T) {
	t.Parallel()
	for _, died := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(died.String(), func(t *testing.T) {
			t.Parallel()
			host, h := startGuarded(t)
			require.NoError(t, host.Process.Signal(died))
			require.Error(t, host.Wait())
			require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Empty(c, h.left(t, host)) }, patience, 50*time.Millisecond)
		})
	}
}

// TestGuardIsKilled, and then its host: the next host with the same directories ends the
// remains, and reports it.
func TestGuardIsKilled(t *testing.T) {
	t.Parallel()
	host, h := startGuarded(t)
	for _, pid := range withEnv(t, osproc.GuardEnv+"="+h.State+"\x00") {
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	}
	require.Eventually(t, func() bool { return len(withEnv(t, osproc.GuardEnv+"="+h.State+"\x00")) == 0 }, patience, 20*time.Millisecond)
	require.NoError(t, host.Process.Kill())
	require.Error(t, host.Wait())
	require.GreaterOrEqual(t, len(withToken(t, h.Token)), survivors-1, "nobody has ended them")

	logged := make(chan string, 8)
	rt, err := runtime.New(runtime.Config{TempDir: h.Temp, StateDir: h.State, Logger: slog.New(slog.NewTextHandler(lines(logged), nil))})
	require.NoError(t, err)
	require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Empty(c, h.left(t, host)) }, patience, 50*time.Millisecond)
	assert.Contains(t, <-logged, "with 1 agent: removed")
	require.NoError(t, rt.Shutdown(t.Context()))
}

// lines is a writer of lines.
type lines chan<- string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}
