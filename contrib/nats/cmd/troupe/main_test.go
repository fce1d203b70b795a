package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/contrib/nats/embedded"
	"github.com/agent-troupe/troupe/fleet"
)

// commandEnv makes this program the command, and nodeEnv a server of a cluster: number, first port,
// directory.
const (
	commandEnv = "TROUPE_NATS_TEST_COMMAND"
	nodeEnv    = "TROUPE_NATS_TEST_NODE"
)

func TestMain(m *testing.M) {
	if os.Getenv(commandEnv) != "" {
		main()
	}
	if v := os.Getenv(nodeEnv); v != "" {
		node(v)
	}
	home, err := os.MkdirTemp("", "troupe-home-") // no startup file of the user's shell
	if err != nil {
		panic(err)
	}
	_ = os.Setenv("HOME", home)
	code := m.Run()
	_ = os.RemoveAll(home)
	os.Exit(code)
}

func node(value string) {
	v := strings.Split(value, ",")
	i, _ := strconv.Atoi(v[0])
	port, _ := strconv.Atoi(v[1])
	c := &embedded.Cluster{Name: "troupe", Port: port + 10 + i}
	for j := range 3 {
		if j != i {
			c.Routes = append(c.Routes, fmt.Sprintf("127.0.0.1:%d", port+10+j))
		}
	}
	s, err := embedded.Start(embedded.Config{Name: fmt.Sprint("n", i), Dir: fmt.Sprintf("%s/n%d", v[2], i), Host: "127.0.0.1", Port: port + i, Cluster: c})
	if err != nil {
		panic(err)
	}
	s.Wait()
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
	}, 2*time.Minute, 20*time.Millisecond, "%s is not in: %s", pattern, p)
	return found
}

func (p *program) String() string { return p.text() }

// exit waits for the end, and returns the exit code.
func (p *program) exit(t *testing.T) int {
	t.Helper()
	select {
	case <-p.over:
	case <-time.After(3 * time.Minute):
		require.Fail(t, "it does not end", "%s", p)
	}
	return p.ProcessState.ExitCode()
}

func start(t *testing.T, args ...string) *program {
	t.Helper()
	return startIn(t, os.Environ(), args...)
}

func startIn(t *testing.T, env []string, args ...string) *program {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	p := &program{Cmd: exec.CommandContext(t.Context(), exe, args...), over: make(chan struct{})}
	p.Env = append(slices.Clone(env), commandEnv+"=1")
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
	const n = 40 // so many that two programs start, one after the other, before they are over
	file, agent := tasks(t, n, time.Second)
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
	start(t, "worker", "--nats", url, "--dir", t.TempDir(), "--name", "third", "-j", fmt.Sprint(n)).await(t, "worker third in")
	run(t, "ctl", "--nats", url, "s", "resume")
	out := filepath.Join(t.TempDir(), "out")
	attached := start(t, "batch", "--attach", "s", "--nats", url, "--out", out)
	assert.Equal(t, 1, attached.exit(t), "a task was not accepted")
	got := results(t, out)
	assert.Len(t, got, n)
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
	posted := make(chan string, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var a fleet.Approval
		assert.NoError(t, json.NewDecoder(r.Body).Decode(&a))
		posted <- a.Task
	}))
	t.Cleanup(hook.Close)
	batch := startIn(t, append(os.Environ(), "TROUPE_WEBHOOK_SECRET=a secret of the test"), "batch", file, "--nats", url, "--agent", "scripted:"+script,
		"--id", "asks", "--approvals", "--webhook", hook.URL, "--out", out)
	batch.await(t, "job asks: the servers have it")
	ctl := func(words ...string) string {
		return run(t, append([]string{"ctl", "--nats", url, "asks"}, words...)...)
	}
	var calls []fleet.Approval
	for began := time.Now(); len(calls) < 2; {
		require.Less(t, time.Since(began), 2*time.Minute, "no call waits")
		calls = nil
		require.NoError(t, json.Unmarshal([]byte(ctl("approvals", "--json")), &calls))
	}
	assert.ElementsMatch(t, []string{"a", "b"}, []string{<-posted, <-posted}, "each call is posted")
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
	assert.Empty(t, posted, "once")
}

// A job asks for a release of its agent that no worker has: programs say so, and a worker that gets it runs it.
func TestAReleaseThatNobodyHas(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "claude"), []byte("#!/bin/sh\necho '2.1.100 (Claude Code)'\n"), 0o700)) //nolint:gosec // a program
	a := startIn(t, append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH")), "worker", "--listen", "127.0.0.1:0", "--dir", t.TempDir(), "--name", "first")
	url := a.await(t, `next worker on this machine: troupe worker --nats (\S+)`)
	file, _ := tasks(t, 1, 0)
	const why = "claude is 2.1.100 on this machine, and the job asks for >=2.1.300"
	batch := start(t, "batch", file, "--nats", url, "--agent", "claude", "--agent-version", ">=2.1.300", "--id", "r", "--yes")
	batch.await(t, "job r: no worker can run it: first: "+why)
	assert.Contains(t, run(t, "jobs", "--nats", url), "none running; first: "+why)
	assert.Contains(t, run(t, "top", "--cluster", "--nats", url), "claude 2.1.100")
}
