package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// These tests run the real binary. Its children are looked for from outside,
// by a token in their arguments.

// patience bounds waits for what must happen.
const patience = time.Minute

// binary is the command, built by TestMain.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "scriptedagent")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "scriptedagent")
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", binary, ".").CombinedOutput(); err != nil {
		panic(string(out))
	}
	code := m.Run()
	_ = os.RemoveAll(dir) // the system sweeps what is left
	os.Exit(code)
}

// process is a running agent.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func (p *process) stderr() string {
	p.t.Helper()
	b, err := os.ReadFile(p.cmd.Stderr.(*os.File).Name())
	require.NoError(p.t, err)
	return string(b)
}

// launch starts the binary in a process group of its own.
func launch(t *testing.T, script string, args ...string) *process {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script.yaml")
	require.NoError(t, os.WriteFile(path, []byte(script), 0o600))
	return start(t, nil, append([]string{"--script", path}, args...)...)
}

func start(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(binary, args...)}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Env = append(append(os.Environ(), "TROUPE_SEED=5"), env...)
	diag, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	require.NoError(t, err)
	p.cmd.Stderr = diag // a file: a child that holds it holds nobody up
	t.Cleanup(func() { require.NoError(t, diag.Close()) })
	p.in, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	p.out = bufio.NewReader(out)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may be gone
		_ = p.cmd.Wait()         // a test that cares has waited
	})
	return p
}

func (p *process) say(lines ...string) {
	p.t.Helper()
	for _, l := range lines {
		_, err := io.WriteString(p.in, l+"\n")
		require.NoError(p.t, err)
	}
}

const (
	hello = `{"type":"control_request","request_id":"i","request":{"subtype":"initialize"}}`
	goOn  = `{"type":"user","message":{"role":"user","content":"go"}}`
)

// until reads frames up to one of a type and returns it.
func (p *process) until(typ string) map[string]any {
	p.t.Helper()
	for {
		line, err := p.out.ReadBytes('\n')
		require.NoError(p.t, err, "waiting for %s; stderr: %s", typ, p.stderr())
		var f map[string]any
		if json.Unmarshal(line, &f) == nil && f["type"] == typ {
			return f
		}
	}
}

// exit waits for the process and returns its code, -1 for a signal.
func (p *process) exit() int {
	p.t.Helper()
	_, err := io.Copy(io.Discard, p.out)
	require.NoError(p.t, err)
	_ = p.cmd.Wait() // the state says it all
	return p.cmd.ProcessState.ExitCode()
}

// born returns the processes that carry token in their arguments.
func born(t *testing.T, token string) []int {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*") // a name below would list each directory
	require.NoError(t, err)
	var pids []int
	for _, d := range dirs {
		b, err := os.ReadFile(filepath.Join(d, "cmdline"))
		if err != nil || !bytes.Contains(b, []byte("\x00"+token+"\x00")) {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(d, "/")[2])
		require.NoError(t, err)
		pids = append(pids, pid)
	}
	return pids
}

func token(t *testing.T) string {
	t.Helper()
	tok := fmt.Sprintf("token-%d-%s", os.Getpid(), strings.ReplaceAll(t.Name(), "/", "-"))
	t.Cleanup(func() {
		for _, pid := range born(t, tok) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may be gone
		}
	})
	return tok
}

// stat returns a process's parent, group and session.
func stat(t *testing.T, pid int) (ppid, pgrp, session int) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	rest := string(b[bytes.LastIndexByte(b, ')')+1:])
	var state string
	_, err = fmt.Sscan(rest, &state, &ppid, &pgrp, &session)
	require.NoError(t, err)
	return ppid, pgrp, session
}

func TestConversation(t *testing.T) {
	t.Parallel()
	p := launch(t, "turns: [{steps: [text: 'you said ${prompt}']}]", "--verbose", "--output-format", "stream-json")
	p.say(hello)
	answer := p.until("control_response")["response"].(map[string]any)["response"].(map[string]any)
	require.InDelta(t, p.cmd.Process.Pid, answer["pid"], 0)
	p.say(goOn)
	require.Equal(t, "you said go", p.until("result")["result"])
	require.NoError(t, p.in.Close())
	require.Zero(t, p.exit())
	require.Empty(t, p.stderr())
}

func TestScriptFromEnvironment(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.yaml")
	require.NoError(t, os.WriteFile(path, []byte("default: [text: from the file]"), 0o600))
	p := start(t, []string{"TROUPE_SCRIPT=" + path})
	p.say(hello, goOn)
	require.Equal(t, "from the file", p.until("result")["result"])
}

func TestBadScript(t *testing.T) {
	t.Parallel()
	p := launch(t, "turnz: 1")
	require.Equal(t, 2, p.exit())
	require.Contains(t, p.stderr(), `:1:1: unknown field "turnz"`)
}

func TestSameSeedSameBytes(t *testing.T) {
	t.Parallel()
	run := func() string {
		p := start(t, nil)
		p.say(hello, goOn)
		require.NoError(t, p.in.Close())
		b, err := io.ReadAll(p.out)
		require.NoError(t, err)
		return strings.ReplaceAll(string(b), fmt.Sprintf(`"pid":%d`, p.cmd.Process.Pid), "")
	}
	first := run()
	require.Equal(t, first, run())
}

func TestSignals(t *testing.T) {
	t.Parallel()
	slow := "turns: [{steps: [tool_use: {name: Bash, gate: allow, takes: 1h}]}]\n"
	t.Run("TERM", func(t *testing.T) {
		t.Parallel()
		p := launch(t, slow)
		p.say(hello, goOn)
		p.until("assistant")
		require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
		require.NotEmpty(t, p.until("user"))
		require.Equal(t, 143, p.exit())
	})
	t.Run("INT", func(t *testing.T) {
		t.Parallel()
		p := launch(t, slow)
		p.say(hello, goOn)
		p.until("assistant")
		require.NoError(t, p.cmd.Process.Signal(os.Interrupt))
		require.Equal(t, "aborted_tools", p.until("result")["terminal_reason"])
		require.Zero(t, p.exit())
	})
	t.Run("trapped TERM", func(t *testing.T) {
		t.Parallel()
		p := launch(t, "misbehave: {trap_term: true, ignore_eof: true}")
		p.say(hello)
		p.until("control_response")
		require.NoError(t, p.in.Close())
		require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			_, _ = io.Copy(io.Discard, p.out) // until it has ended
			_ = p.cmd.Wait()                  // the state says it all
		}()
		select {
		case <-gone:
			t.Error("it went")
		case <-time.After(300 * time.Millisecond):
		}
		require.NoError(t, p.cmd.Process.Kill())
		<-gone
		require.Equal(t, syscall.SIGKILL, p.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())
	})
	t.Run("kills itself", func(t *testing.T) {
		t.Parallel()
		p := launch(t, "misbehave: {die: {at: before-result, signal: KILL}}")
		p.say(hello, goOn)
		require.Equal(t, -1, p.exit())
		require.Equal(t, syscall.SIGKILL, p.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())
	})
	t.Run("segfaults itself", func(t *testing.T) {
		t.Parallel()
		p := launch(t, "turns: [{steps: [exit: {signal: SIGSEGV}]}]")
		p.say(hello, goOn)
		require.Equal(t, -1, p.exit())
		require.Equal(t, syscall.SIGSEGV, p.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())
	})
}

// What an agent that never reads is sent stays in the pipe, which fills.
func TestNeverReads(t *testing.T) {
	t.Parallel()
	p := launch(t, "misbehave: {never_read: true}")
	pipe, ok := p.in.(*os.File)
	require.True(t, ok)
	require.NoError(t, pipe.SetWriteDeadline(time.Now().Add(500*time.Millisecond)))
	n, err := pipe.Write(make([]byte, 4<<20))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.LessOrEqual(t, n, 1<<20)
}

func TestFlood(t *testing.T) {
	t.Parallel()
	p := launch(t, "turns: [{steps: [flood: {count: 20000, size: 100}]}]")
	p.say(hello, goOn)
	var ns int64
	var unit string
	_, err := fmt.Sscan(p.until("result")["result"].(string), &ns, &unit)
	require.NoError(t, err)
	require.Equal(t, "ns", unit)
	require.Positive(t, ns)
}

func TestChildren(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		child                     string
		session, orphan, survives bool
	}{
		"in the group":         {"", false, false, false},
		"own session":          {"session: true", true, false, true},
		"traps TERM":           {"trap_term: true", false, false, true},
		"re-parented":          {"reparent: true", false, true, false},
		"holds stdout":         {"hold_stdout: true", false, false, false},
		"everything":           {"session: true, trap_term: true, reparent: true, hold_stdout: true", true, true, true},
		"re-parented, session": {"reparent: true, session: true", true, true, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tok := token(t)
			p := launch(t, "misbehave: {children: [{token: '"+tok+"', "+tt.child+"}]}")
			p.say(hello)
			p.until("control_response")
			var pids []int
			require.Eventually(t, func() bool { pids = born(t, tok); return len(pids) == 1 }, patience, 5*time.Millisecond)
			agent := p.cmd.Process.Pid
			ppid, pgrp, session := stat(t, pids[0])
			require.Equal(t, tt.session, pgrp != agent)
			_, _, own := stat(t, agent)
			require.Equal(t, tt.session, session != own)
			require.Equal(t, tt.orphan, ppid != agent)

			if strings.Contains(tt.child, "hold_stdout") {
				link, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/1", pids[0]))
				require.NoError(t, err)
				require.Contains(t, link, "pipe:")
			}
			if strings.Contains(tt.child, "trap_term") { // its name shows before it has come so far
				require.Eventually(t, func() bool { return ignores(t, pids[0], syscall.SIGTERM) }, patience, 5*time.Millisecond)
			}
			require.NoError(t, syscall.Kill(-agent, syscall.SIGTERM))
			if !tt.survives {
				require.Eventually(t, func() bool { return len(born(t, tok)) == 0 }, patience, 5*time.Millisecond)
				return
			}
			require.Eventually(t, func() bool { return syscall.Kill(agent, 0) != nil || zombie(t, agent) }, patience, 5*time.Millisecond)
			require.Len(t, born(t, tok), 1)
		})
	}
}

// ignores says whether a process has come to ignore a signal.
func ignores(t *testing.T, pid int, sig syscall.Signal) bool {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(b), "SigIgn:\t")
	var mask uint64
	_, err = fmt.Sscanf(rest, "%x", &mask)
	return err == nil && mask&(1<<(sig-1)) != 0
}

func zombie(t *testing.T, pid int) bool {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || bytes.Contains(b, []byte(") Z"))
}

// A child that forks is never the same for long, and never gone.
func TestForkingChild(t *testing.T) {
	t.Parallel()
	tok := token(t)
	p := launch(t, "misbehave: {children: [{token: '"+tok+"', session: true, forks: 30ms, lifetime: 1m}]}")
	p.say(hello)
	p.until("control_response")
	seen := map[int]bool{}
	require.Eventually(t, func() bool {
		for _, pid := range born(t, tok) {
			seen[pid] = true
		}
		return len(seen) >= 4
	}, patience, 2*time.Millisecond)
}

func TestSpawnStep(t *testing.T) {
	t.Parallel()
	tok := token(t)
	p := launch(t, "turns: [{steps: [spawn: {token: '"+tok+"', session: true, lifetime: 1m}]}]")
	p.say(hello, goOn)
	p.until("result")
	require.Len(t, born(t, tok), 1)
}
