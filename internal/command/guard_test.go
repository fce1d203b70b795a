package command

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/internal/osproc"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// Each makes the test's program another one.
const (
	guardedHostEnv  = "TROUPE_TEST_GUARDED_HOST"  // a host, whose directory it names
	guardedAgentEnv = "TROUPE_TEST_GUARDED_AGENT" // that host's agent
)

// otherProgram is the program that the environment asks for; nil: the tests.
func otherProgram() func() {
	switch {
	case os.Getenv(osproc.GuardEnv) != "":
		return func() { os.Exit(Main(context.Background(), os.Args[1:])) } // troupe guard
	case os.Getenv(guardedAgentEnv) != "":
		return func() {
			agent.Main(scripted.New(
				scripted.WithTurns(scripted.Turn{Steps: scripted.Steps{&scripted.Spawn{}, scripted.Text("busy"), scripted.Delay(time.Hour)}}),
				scripted.WithSpawn(func(scripted.Child) error {
					return exec.Command("sleep", "600").Start()
				})))
		}
	case os.Getenv(secretHostEnv) != "":
		return secretHost
	case os.Getenv(guardedHostEnv) != "":
		return guardedHost
	}
	return nil
}

func guardedHost() {
	dir := os.Getenv(guardedHostEnv)
	check := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(2)
		}
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3) // the test is gone
	}()
	ctx := context.Background()
	rt, err := runtime.New(runtime.Config{StateDir: filepath.Join(dir, "state"), TempDir: dir, Guard: []string{"/proc/self/exe", "guard"}})
	check(err)
	s, err := rt.Open(ctx, runtime.Spec{Dialect: claude.New(), Options: session.Options{PathToExecutable: "/proc/self/exe", Env: map[string]string{guardedAgentEnv: dir}}})
	check(err)
	turn, err := s.Send(ctx, &protocol.UserMessage{Message: protocol.UserContent{Role: "user", Content: protocol.StringContent("go")}})
	check(err)
	for m, err := range turn.Messages(ctx) {
		check(err)
		fmt.Println(protocol.TextOf(m))
	}
}

// TestGuard starts the guard as the command that the documentation of runtime.Config.Guard
// names.
func TestGuard(t *testing.T) {
	t.Parallel()
	if goruntime.GOOS != "linux" {
		t.Skip("processes are found on Linux alone")
	}
	dir := t.TempDir()
	host := exec.Command("/proc/self/exe")
	host.Env = append(os.Environ(), guardedHostEnv+"="+dir)
	_, err := host.StdinPipe()
	require.NoError(t, err)
	out, err := host.StdoutPipe()
	require.NoError(t, err)
	var notes screen
	host.Stderr = &notes
	require.NoError(t, host.Start())
	t.Cleanup(func() { _ = host.Process.Kill() })
	for lines := bufio.NewScanner(out); ; {
		require.True(t, lines.Scan(), "the host has ended: %s", &notes)
		if lines.Text() == "busy" {
			break
		}
	}
	commands := strings.Join(withDir(t, dir), "\n")
	assert.Contains(t, commands, "/proc/self/exe guard", "the guard")
	assert.Contains(t, commands, "sleep 600")
	require.NoError(t, host.Process.Kill())
	require.Error(t, host.Wait())
	require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Empty(c, withDir(t, dir)) }, time.Minute, 10*time.Millisecond)
	left, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

// withDir are the command lines of the processes that have the directory in their
// environment.
func withDir(t *testing.T, dir string) (commands []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*") // a name below would list each directory
	require.NoError(t, err)
	for _, process := range all {
		if env, err := os.ReadFile(filepath.Join(process, "environ")); err == nil && bytes.Contains(env, []byte("="+dir)) {
			line, _ := os.ReadFile(filepath.Join(process, "cmdline"))
			commands = append(commands, string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return commands
}
