package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet"
)

// commandEnv makes this program the command.
const commandEnv = "TROUPE_NATS_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(commandEnv) != "" {
		main()
	}
	os.Exit(m.Run())
}

// program is a process of the command.
type program struct {
	*exec.Cmd
	mu   sync.Mutex
	b    bytes.Buffer
	over chan struct{}
}

func (p *program) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.b.Write(b)
}

func (p *program) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.b.String()
}

// await waits until the program has written what fits, and returns the last group.
func (p *program) await(t *testing.T, pattern string) string {
	t.Helper()
	re, found := regexp.MustCompile(pattern), ""
	require.Eventually(t, func() bool {
		m := re.FindStringSubmatch(p.text())
		if m != nil {
			found = m[len(m)-1]
		}
		return m != nil
	}, time.Minute, 20*time.Millisecond, "%s is not in: %s", pattern, p)
	return found
}

func (p *program) String() string { return p.text() }

// exit waits for the end, and returns the exit code.
func (p *program) exit(t *testing.T) int {
	t.Helper()
	select {
	case <-p.over:
	case <-time.After(time.Minute):
		require.Fail(t, "it does not end", "%s", p)
	}
	return p.ProcessState.ExitCode()
}

func start(t *testing.T, args ...string) *program {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	p := &program{Cmd: exec.CommandContext(t.Context(), exe, args...), over: make(chan struct{})}
	p.Env = append(os.Environ(), commandEnv+"=1")
	p.Stdout, p.Stderr, p.Dir = p, p, t.TempDir()
	require.NoError(t, p.Start())
	go func() {
		defer close(p.over)
		_ = p.Wait()
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.over
		if t.Failed() {
			t.Logf("%v:\n%s", args, p)
		}
	})
	return p
}

// first starts the first machine, and returns how others reach it.
func first(t *testing.T, more ...string) (p *program, url string) {
	t.Helper()
	p = start(t, append([]string{"worker", "--listen", "127.0.0.1:0", "--dir", t.TempDir(), "--name", "first"}, more...)...)
	return p, p.await(t, `next worker on this machine: troupe worker --nats (\S+)`)
}

// tasks writes a file of tasks, and a script whose answers take some time.
func tasks(t *testing.T, n int, delay time.Duration) (file, agent string) {
	t.Helper()
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"id\":\"t%d\",\"prompt\":\"do %d\"}\n", i, i)
	}
	dir := t.TempDir()
	file, script := filepath.Join(dir, "tasks.jsonl"), filepath.Join(dir, "script.yaml")
	require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o600))
	require.NoError(t, os.WriteFile(script, fmt.Appendf(nil, "default:\n  - {delay: %s}\n  - {text: done}\n", delay), 0o600))
	return file, "scripted:" + script
}

func results(t *testing.T, out string) map[string]fleet.TaskResult {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(out, "results.jsonl"))
	require.NoError(t, err)
	all := map[string]fleet.TaskResult{}
	for line := range bytes.Lines(raw) {
		var r fleet.TaskResult
		require.NoError(t, json.Unmarshal(line, &r))
		assert.NotContains(t, all, r.ID, "one result each")
		all[r.ID] = r
	}
	return all
}

// A worker is killed in the middle of a job: each task has one result, and a second program that
// attaches has the same ones.
func TestAWorkerIsKilled(t *testing.T) {
	t.Parallel()
	a, url := first(t, "-j", "2")
	b := start(t, "worker", "--nats", url, "--dir", t.TempDir(), "--name", "second", "-j", "2")
	b.await(t, "worker second in")
	file, agent := tasks(t, 16, 200*time.Millisecond)
	out, again := filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "again")
	batch := start(t, "batch", file, "--nats", url, "--agent", agent, "--id", "kill", "--lease", "2s", "--out", out)
	b.await(t, `job kill: t\d+: accepted`)
	require.NoError(t, b.Process.Signal(syscall.SIGKILL))
	assert.Zero(t, batch.exit(t))
	assert.Contains(t, batch.text(), "16 of 16 tasks accepted")
	got, by := results(t, out), map[string]int{}
	assert.Len(t, got, 16)
	for _, r := range got {
		assert.Equal(t, "done", r.Text)
		name, _, _ := strings.Cut(r.Worker, ".")
		by[name]++
	}
	assert.Positive(t, by["first"])
	assert.Positive(t, by["second"])
	attached := start(t, "batch", "--attach", "kill", "--nats", url, "--out", again)
	assert.Zero(t, attached.exit(t))
	for id, r := range results(t, again) {
		assert.Equal(t, got[id].Fence, r.Fence)
		assert.Equal(t, got[id].Worker, r.Worker)
	}
	jobs := start(t, "jobs", "--nats", url)
	assert.Zero(t, jobs.exit(t))
	assert.Regexp(t, `kill +over +scripted.*16 tasks`, jobs.text())
	assert.Zero(t, start(t, "jobs", "rm", "kill", "--nats", url).exit(t))
	jobs = start(t, "jobs", "--nats", url)
	assert.Zero(t, jobs.exit(t))
	assert.Contains(t, jobs.text(), "there are no jobs")
	require.NoError(t, a.Process.Signal(syscall.SIGTERM))
	assert.Zero(t, a.exit(t))
}

// run is a command that ends well, and what it prints.
func run(t *testing.T, args ...string) string {
	t.Helper()
	p := start(t, args...)
	require.Zero(t, p.exit(t), "%v: %s", args, p)
	return p.text()
}

// A person decides about a job from any machine, and drains a worker.
func TestSteering(t *testing.T) {
	t.Parallel()
	_, url := first(t, "-j", "1", "--label", "zone=a")
	b := start(t, "worker", "--nats", url, "--dir", t.TempDir(), "--name", "second", "-j", "1")
	b.await(t, "worker second in")
	file, agent := tasks(t, 16, 300*time.Millisecond)
	run(t, "batch", file, "--nats", url, "--agent", agent, "--id", "s", "--detach")
	run(t, "ctl", "--nats", url, "s", "pause")
	require.Eventually(t, func() bool {
		return strings.Contains(run(t, "ctl", "--nats", url, "s"), "s: open, paused") && strings.Contains(run(t, "ctl", "--nats", url, "s"), "\n0 running")
	}, time.Minute, 50*time.Millisecond)
	left := regexp.MustCompile(`(?m)^ +(t\d+) +queued`).FindAllStringSubmatch(run(t, "ctl", "--nats", url, "s"), -1)
	require.GreaterOrEqual(t, len(left), 2, "each worker begins at another place, and the pause came in time")
	canceled, later := left[0][1], left[1][1]
	run(t, "ctl", "--nats", url, "s", "cancel", canceled)
	assert.Contains(t, run(t, "top", "--cluster", "--nats", url), "zone=a")
	run(t, "ctl", "--nats", url, "--host", "second", "drain")
	assert.Zero(t, b.exit(t))
	assert.Contains(t, b.text(), "drained from elsewhere")
	gone := start(t, "ctl", "--nats", url, "--host", "second", "drain")
	assert.Equal(t, 1, gone.exit(t))
	assert.Contains(t, gone.text(), "no worker with this name")
	run(t, "ctl", "--nats", url, "s", "resume")
	out := filepath.Join(t.TempDir(), "out")
	attached := start(t, "batch", "--attach", "s", "--nats", url, "--out", out)
	assert.Equal(t, 1, attached.exit(t), "a task was not accepted")
	got := results(t, out)
	assert.Len(t, got, 16)
	assert.Equal(t, fleet.Canceled, got[canceled].Status)
	assert.Equal(t, fleet.Accepted, got[later].Status)
	assert.Contains(t, run(t, "ctl", "--nats", url, "s", "results"), "canceled")
	missing := start(t, "ctl", "--nats", url, "s", "cancel", "nowhere")
	assert.Equal(t, 1, missing.exit(t))

	run(t, "ctl", "--nats", url, "s", "requeue", "--status", "canceled")
	again := filepath.Join(t.TempDir(), "again")
	assert.Zero(t, start(t, "batch", "--attach", "s", "--nats", url, "--out", again).exit(t))
	assert.Equal(t, fleet.Accepted, results(t, again)[canceled].Status)
}

// Calls that no rule decides wait at the worker, and are answered from another program.
func TestApprovals(t *testing.T) {
	t.Parallel()
	_, url := first(t, "-j", "2")
	dir := t.TempDir()
	file, script, out := filepath.Join(dir, "tasks.jsonl"), filepath.Join(dir, "script.yaml"), filepath.Join(dir, "out")
	require.NoError(t, os.WriteFile(file, []byte("{\"id\":\"a\",\"prompt\":\"one\"}\n{\"id\":\"b\",\"prompt\":\"two\"}\n"), 0o600))
	call := `  - {match: %s, steps: [{tool_use: {name: Bash, input: {command: make %s}, result: "ran"}}, {text: ended}]}` + "\n"
	require.NoError(t, os.WriteFile(script, []byte("turns:\n"+fmt.Sprintf(call, "one", "x")+fmt.Sprintf(call, "two", "y")), 0o600))
	batch := start(t, "batch", file, "--nats", url, "--agent", "scripted:"+script, "--id", "asks", "--approvals", "--out", out)
	batch.await(t, "job asks: the servers have it")
	ctl := func(words ...string) string {
		return run(t, append([]string{"ctl", "--nats", url, "asks"}, words...)...)
	}
	var calls []fleet.Approval
	for began := time.Now(); len(calls) < 2; {
		require.Less(t, time.Since(began), 40*time.Second, "no call waits")
		calls = nil
		require.NoError(t, json.Unmarshal([]byte(ctl("approvals", "--json")), &calls))
	}
	ids := map[string]string{}
	for _, c := range calls {
		ids[c.Task] = c.ID
	}
	ctl("allow", ids["a"])
	ctl("deny", ids["b"][:8], "not", "today")
	batch.exit(t)
	got := results(t, out)
	assert.Zero(t, got["a"].Denied)
	assert.Equal(t, 1, got["b"].Denied)
	if assert.Len(t, got["b"].Denials, 1) {
		assert.Contains(t, got["b"].Denials[0].Reason, "not today")
	}
	assert.Contains(t, ctl("approvals"), "no call waits")
	again := start(t, "ctl", "--nats", url, "asks", "allow", ids["a"])
	assert.Equal(t, 1, again.exit(t))
}
