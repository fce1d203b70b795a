package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
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
	"golang.org/x/sys/unix"
)

// binaries are the command and an agent that misbehaves, built once.
type binaries struct{ troupe, agent string }

func TestProcesses(t *testing.T) {
	t.Parallel()
	b := build(t)
	t.Run("signals", b.testSignals)
	t.Run("signals that are ignored", b.testIgnoredSignals)
	t.Run("the reader goes away", b.testReaderGoesAway)
	t.Run("the output is lost", b.testOutputLost)
	t.Run("at a terminal", b.testAtATerminal)
	t.Run("acp", b.testACP)
	t.Run("acp and back", b.testACPRoundTrip)
	t.Run("signals to a batch", b.testBatchSignals)
	t.Run("the window of a batch", b.testBatchWindow)
	t.Run("ctl after kill -9 of a batch", b.testCtlAfterKill)
}

func build(t *testing.T) binaries {
	t.Helper()
	b := binaries{filepath.Join(t.TempDir(), "troupe"), filepath.Join(t.TempDir(), "agent")}
	for program, source := range map[string]string{b.troupe: "../../cmd/troupe", b.agent: "../../agent/scripted/scriptedagent"} {
		out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", program, source).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	return b
}

// run starts the command with an agent that plays yaml. What it leaves is found
// by a token in the arguments of the agent's children.
func (b binaries) run(t *testing.T, yaml, level string, set func(*exec.Cmd)) (cmd *exec.Cmd, out *screen, token string) {
	t.Helper()
	token = fmt.Sprintf("troupe-test-%d-%s", os.Getpid(), strings.NewReplacer("/", "-", " ", "-").Replace(t.Name()))
	file := filepath.Join(t.TempDir(), "script.yaml")
	yaml = strings.ReplaceAll(yaml, "TOKEN", token)
	require.NoError(t, os.WriteFile(file, []byte(yaml), 0o600))
	cmd = exec.CommandContext(t.Context(), b.troupe, "run", "--agent", "claude", "--path", b.agent, "--env", "TROUPE_SCRIPT="+file, "--log-level", level, "go")
	out = &screen{}
	cmd.Stdout, cmd.Stderr = out, out
	if set != nil {
		set(cmd)
	}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, out, token
}

// processes lists the live processes with text in their arguments.
func processes(t *testing.T, text string) (found []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*") // a name below would list each directory
	require.NoError(t, err)
	for _, dir := range all {
		file := filepath.Join(dir, "cmdline")
		args, err := os.ReadFile(file) // gone by now: no matter
		if err == nil && bytes.Contains(args, []byte(text)) {
			found = append(found, file+" "+string(bytes.ReplaceAll(args, []byte{0}, []byte{' '})))
		}
	}
	return found
}

// leavesNothing checks that no process is left: what was killed may need the processor to end.
func leavesNothing(t *testing.T, token string) {
	t.Helper()
	soonEmpty(t, func() []string { return processes(t, token) })
}

// soonEmpty waits until nothing is left.
func soonEmpty(t *testing.T, left func() []string) {
	t.Helper()
	assert.EventuallyWithT(t, func(c *assert.CollectT) { assert.Empty(c, left(), "left behind") }, time.Minute, 10*time.Millisecond)
}

func exitCode(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	late := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Signal(unix.SIGQUIT) }) // it says where it hangs
	defer late.Stop()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return cmd.ProcessState.ExitCode()
}

const leaves = slowTurn + `
misbehave:
  children: [{token: TOKEN, session: true}, {token: TOKEN, reparent: true, trap_term: true}]
`

func (b binaries) testSignals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		when   string // what is waited for before the first signal
		send   []os.Signal
		say    []string // and after each
		code   int
	}{
		"first interrupts": {leaves, "begun", []os.Signal{os.Interrupt}, []string{""}, 130},
		"second closes":    {leaves + "  ignore: [interrupt]\n", "begun", []os.Signal{os.Interrupt, os.Interrupt}, []string{"interrupting", "closing"}, 130},
		"third kills":      {leaves + "  ignore: [interrupt]\n  trap_term: true\n  ignore_eof: true\n", "begun", []os.Signal{os.Interrupt, os.Interrupt, os.Interrupt}, []string{"interrupting", "closing", "killing"}, 130},
		"at the start":     {leaves + "  initialize: {mode: never}\n", "starting -> initializing", []os.Signal{os.Interrupt}, []string{""}, 130},
		"terminate closes": {leaves, "begun", []os.Signal{syscall.SIGTERM}, []string{"closing"}, 143},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd, out, token := b.run(t, c.script, "debug", func(cmd *exec.Cmd) {
				if len(c.send) == 3 {
					cmd.Args = append(cmd.Args, patient(t)...)
				}
			})
			out.await(t, c.when)
			if c.when == "begun" {
				assert.NotEmpty(t, processes(t, token), "the agent has children")
			}
			for i, sig := range c.send {
				require.NoError(t, cmd.Process.Signal(sig))
				out.await(t, c.say[i])
			}
			assert.Equal(t, c.code, exitCode(t, cmd), out)
			leavesNothing(t, token)
		})
	}
}

// testIgnoredSignals: nohup, and a script with the command in its background, have signals ignored, and they stay so.
func (b binaries) testIgnoredSignals(t *testing.T) {
	t.Parallel()
	cmd, out, token := b.run(t, leaves, "debug", func(cmd *exec.Cmd) {
		cmd.Args = append([]string{"sh", "-c", `trap "" HUP INT; exec "$@"`, "sh"}, cmd.Args...)
		sh, err := exec.LookPath("sh")
		require.NoError(t, err)
		cmd.Path = sh
	})
	out.await(t, "begun")
	for _, sig := range []os.Signal{syscall.SIGHUP, os.Interrupt, syscall.SIGTERM} { // they arrive in this order
		require.NoError(t, cmd.Process.Signal(sig))
	}
	assert.Equal(t, 143, exitCode(t, cmd), out)
	leavesNothing(t, token)
}

func (b binaries) testReaderGoesAway(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	errors := &screen{}
	// There is always more to write, however late the reader goes.
	more := strings.Repeat("{delay: 50ms}, {text: more}, ", 1000)
	cmd, _, token := b.run(t, `
turns: [{steps: [{text: begun}, `+more+`{delay: 1h}]}]
misbehave: {children: [{token: TOKEN, session: true}]}`, "warn", func(cmd *exec.Cmd) { cmd.Stdout, cmd.Stderr = w, errors })
	require.NoError(t, w.Close())
	_, err = io.ReadFull(r, make([]byte, len("begun")))
	require.NoError(t, err)
	require.NoError(t, r.Close())
	assert.Equal(t, 141, exitCode(t, cmd))
	assert.Empty(t, errors.String())
	leavesNothing(t, token)
}

// terminal is a new pseudo-terminal; the second file is the one programs see.
func terminal(t *testing.T) (keys, tty *os.File) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	return os.NewFile(uintptr(fd), "ptmx"), tty
}

func (b binaries) testAtATerminal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script, stdin string
		keys          map[string]string // by what is on the screen first
		want          []string
		code          int
	}{
		"a question": {
			`turns: [{steps: [{tool_use: {name: Bash, input: {command: ls}, gate: ask, result: done}}]}]`, "",
			map[string]string{"Allow it? [y/n/a/?] ": "y\n"}, []string{"← done"}, exitOK,
		},
		"a question, and stdin is a file": {
			`turns: [{steps: [{tool_use: {name: Bash, input: {command: ls}, gate: ask, result: done}}]}]`, os.DevNull,
			map[string]string{"Allow it? [y/n/a/?] ": "y\n"}, []string{"← done"}, exitOK,
		},
		"Ctrl-C": {
			slowTurn, "", map[string]string{"begun": "\x03"},
			[]string{"^C\r\n", "\r\ntroupe: interrupting", "troupe: interrupted\r\n"}, 130,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keys, tty := terminal(t)
			cmd, _, _ := b.run(t, c.script, "warn", func(cmd *exec.Cmd) {
				cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
				if c.stdin != "" {
					cmd.Stdin = nil
				}
				cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 1}
			})
			require.NoError(t, tty.Close())
			shown := &screen{}
			var reader sync.WaitGroup
			reader.Go(func() { _, _ = io.Copy(shown, keys) }) // until nobody holds the terminal
			for text, answer := range c.keys {
				shown.await(t, text)
				_, err := keys.WriteString(answer)
				require.NoError(t, err)
			}
			assert.Equal(t, c.code, exitCode(t, cmd), shown)
			reader.Wait()
			require.NoError(t, keys.Close())
			for _, text := range c.want {
				assert.Contains(t, shown.String(), text)
			}
		})
	}
}

func TestIsTerminal(t *testing.T) {
	t.Parallel()
	keys, tty := terminal(t)
	defer keys.Close()
	defer tty.Close()
	assert.True(t, isTerminal(tty))
	for _, name := range []string{os.DevNull, "process_linux_test.go"} {
		f, err := os.Open(name)
		require.NoError(t, err)
		assert.False(t, isTerminal(f), name)
		require.NoError(t, f.Close())
	}
}
