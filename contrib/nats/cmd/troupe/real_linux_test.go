package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance"
	"github.com/agent-troupe/troupe/conformance/modelapi"
	troupenats "github.com/agent-troupe/troupe/contrib/nats"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/queue"
)

// markEnv is in the environment of each process that an agent of a worker starts.
const markEnv = "TROUPE_NATS_TEST_MARK"

// real is a job with a real agent. Each task has a command write the fence of its lease, and leave a
// process behind.
type real struct {
	t       *testing.T
	dir     string
	model   *modelapi.Server
	agent   []string // flags of troupe batch
	path    string   // of the workers
	url     string
	workers map[string]*program
}

func newReal(t *testing.T, agent string) *real {
	t.Helper()
	model, err := modelapi.Start(modelapi.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = model.Close() })
	r := &real{t: t, dir: t.TempDir(), model: model, path: os.Getenv("PATH"), workers: map[string]*program{}, agent: []string{"--agent", agent, "--yes", "--add-dir", ""}}
	r.agent[len(r.agent)-1] = r.dir
	switch agent {
	case "embedded":
		r.agent = append(r.agent, "--model", model.URL()+"/v1#m")
	default:
		cli := os.Getenv("TROUPE_CLAUDE_CLI")
		require.NotEmpty(t, cli, "the first line of .ci/conformance-install")
		bin := t.TempDir()
		require.NoError(t, os.Symlink(cli, filepath.Join(bin, agent)))
		r.path = bin + ":" + r.path
	}
	model.Script("job",
		func(c modelapi.Call) modelapi.Reply {
			command := fmt.Sprintf("echo $TROUPE_FENCE >> %s/%s.fences; setsid sleep 300 >/dev/null 2>&1 </dev/null & true", r.dir, c.Arg)
			return modelapi.Reply{Blocks: []modelapi.Block{modelapi.ToolUse("Bash", map[string]any{"command": command, "description": "work"})}}
		},
		func(c modelapi.Call) modelapi.Reply {
			return modelapi.Reply{Blocks: []modelapi.Block{modelapi.Text("finished " + c.Arg)}, Delay: 400 * time.Millisecond}
		})
	t.Cleanup(func() {
		for _, pid := range r.left() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return r
}

// tasks writes n tasks.
func (r *real) tasks(n int) (file string) {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"id\":\"t%d\",\"prompt\":\"do it [[scn:job t%d]]\"}\n", i, i)
	}
	file = filepath.Join(r.dir, "tasks.jsonl")
	require.NoError(r.t, os.WriteFile(file, []byte(b.String()), 0o600))
	return file
}

// hire starts a worker, also again in its directory: as on a machine, it has a separate home.
func (r *real) hire(name string, args ...string) *program {
	dir, home := filepath.Join(r.dir, name), filepath.Join(r.dir, name, "home")
	require.NoError(r.t, os.MkdirAll(home, 0o700))
	env := append(conformance.OfflineEnv(r.model.URL(), home), "PATH="+r.path, markEnv+"="+r.dir)
	r.workers[name] = startIn(r.t, env, append([]string{"worker", "--dir", dir, "--name", name}, args...)...)
	return r.workers[name]
}

// left are the processes of agents, and those that they have left behind.
func (r *real) left() (pids []int) {
	own, _ := os.Executable()
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range all {
		env, _ := os.ReadFile(f) // or it has ended
		exe, err := os.Readlink(filepath.Dir(f) + "/exe")
		if err != nil || exe == own || !bytes.Contains(env, []byte(markEnv+"="+r.dir+"\x00")) {
			continue
		}
		pid, _ := strconv.Atoi(strings.Split(f, "/")[2])
		pids = append(pids, pid)
	}
	return pids
}

// check compares what the submitter and a program that attaches later have: each task once. It returns how
// often the command of a task has run.
func (r *real) check(job string, n int, out string) (runs int) {
	t := r.t
	got, fences := results(t, out), map[uint64]bool{}
	assert.Len(t, got, n)
	for id, of := range got {
		assert.Equal(t, fleet.Accepted, of.Status, "%s: %s", id, of.Error)
		assert.Contains(t, of.Text, "finished "+id)
		assert.False(t, fences[of.Fence], "two results with fence %d", of.Fence)
		fences[of.Fence] = true
		raw, err := os.ReadFile(filepath.Join(r.dir, id+".fences"))
		require.NoError(t, err)
		last := uint64(0)
		for line := range strings.Lines(string(raw)) {
			fence, err := strconv.ParseUint(strings.TrimSpace(line), 10, 64)
			require.NoError(t, err)
			assert.Greater(t, fence, last, "%s: an older program has worked after a newer one", id)
			last = fence
			runs++
		}
		assert.LessOrEqual(t, last, of.Fence, id)
	}
	again := filepath.Join(r.dir, "again")
	assert.Zero(t, start(t, "batch", "--attach", job, "--nats", r.url, "--out", again).exit(t))
	for id, of := range results(t, again) {
		assert.Equal(t, []any{got[id].Fence, got[id].Worker, got[id].Text}, []any{of.Fence, of.Worker, of.Text}, id)
	}
	assert.Eventually(t, func() bool { return len(r.left()) == 0 }, time.Minute, 100*time.Millisecond, "processes of agents that live: %v", r.left())
	return runs
}

// A worker is killed in the middle of a job, and comes back: each task has one result, and a second program
// that attaches has the same ones. It is TestARealJob at a reduced size.
func TestAWorkerIsKilled(t *testing.T) {
	t.Parallel()
	const n = 16
	r := newReal(t, "embedded")
	a := r.hire("first", "--listen", "127.0.0.1:0", "-j", "2")
	r.url = a.await(t, `next worker on this machine: troupe worker --nats (\S+)`)
	b := r.hire("second", "--nats", r.url, "-j", "2")
	b.await(t, "worker second in")
	out := filepath.Join(r.dir, "out")
	batch := start(t, append([]string{"batch", r.tasks(n), "--nats", r.url, "--id", "kill", "--lease", "5s", "--out", out}, r.agent...)...)
	b.await(t, `job kill: t\d+: accepted`)
	require.NoError(t, b.Process.Signal(syscall.SIGKILL))
	b.exit(t)
	r.hire("second", "--nats", r.url, "-j", "2")
	assert.Zero(t, batch.exit(t))
	assert.Contains(t, batch.text(), "16 of 16 tasks accepted")
	by := map[string]int{}
	for _, of := range results(t, out) {
		name, _, _ := strings.Cut(of.Worker, ".")
		by[name]++
	}
	assert.Positive(t, by["first"])
	assert.Positive(t, by["second"])
	assert.LessOrEqual(t, r.check("kill", n, out), n+2)
	jobs := start(t, "jobs", "--nats", r.url)
	assert.Zero(t, jobs.exit(t))
	assert.Regexp(t, `kill +over +embedded.*16 tasks`, jobs.text())
	assert.Zero(t, start(t, "jobs", "rm", "kill", "--nats", r.url).exit(t))
	jobs = start(t, "jobs", "--nats", r.url)
	assert.Zero(t, jobs.exit(t))
	assert.Contains(t, jobs.text(), "there are no jobs")
	require.NoError(t, a.Process.Signal(syscall.SIGTERM))
	assert.Zero(t, a.exit(t))
}

// 48 tasks on three workers and three servers. One worker and the server that leads the job are killed: each
// task has one result, and no agent is left.
func TestARealJob(t *testing.T) { //nolint:paralleltest // agents need the whole machine
	if os.Getenv("TROUPE_FULL") == "" {
		t.Skip("TROUPE_FULL is not set; TestAWorkerIsKilled has a smaller job")
	}
	for i, agent := range []string{"embedded", "claude"} {
		t.Run(agent, func(t *testing.T) { realJob(t, newReal(t, agent), 16022+100*i) })
	}
}

func realJob(t *testing.T, r *real, port int) {
	t.Helper()
	const n, places = 48, 4
	servers := cluster(t, port)
	r.url = servers.urls
	require.Zero(t, start(t, "jobs", "--nats", r.url).exit(t), "there is a leader")
	names := []string{"w0", "w1", "w2"}
	for _, name := range names {
		r.hire(name, "--nats", r.url, "-j", fmt.Sprint(places)).await(t, "worker "+name+" in")
	}
	out := filepath.Join(r.dir, "out")
	batch := start(t, append([]string{"batch", r.tasks(n), "--nats", r.url, "--id", "real", "--lease", "10s", "--out", out}, r.agent...)...)
	batch.await(t, "the servers have it")

	nc, err := troupenats.Connect(r.url)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	q, err := troupenats.Open(t.Context(), nc, troupenats.Config{Job: "real", TTL: 10 * time.Second})
	require.NoError(t, err)
	t.Cleanup(q.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	for _, name := range []string{"KV_TROUPE_JOBS", "KV_TROUPE_HOSTS", "KV_TROUPE_CAPS", "TROUPE_Q_real", "TROUPE_F_real", "OBJ_TROUPE_real"} {
		s, err := js.Stream(t.Context(), name)
		require.NoError(t, err, name)
		assert.Equal(t, 3, s.CachedInfo().Config.Replicas, "%s is needed, and a server dies", name)
	}
	over := map[string]bool{}
	began := time.Now()
	for c, err := range q.Watch(t.Context()) {
		require.NoError(t, err)
		require.Less(t, time.Since(began), 5*time.Minute, "%d of %d tasks are over", len(over), n)
		if c.State != queue.Over {
			continue
		}
		require.False(t, over[c.Task], "two results of %s", c.Task)
		over[c.Task] = true
		switch len(over) {
		case n / 3:
			require.NoError(t, r.workers["w0"].Process.Signal(syscall.SIGKILL))
			r.workers["w0"].exit(t)
		case n / 2:
			s, err := js.Stream(t.Context(), "TROUPE_Q_real")
			require.NoError(t, err)
			servers.kill(t, s.CachedInfo().Cluster.Leader)
			r.hire("w0", "--nats", r.url, "-j", fmt.Sprint(places)).await(t, "worker w0 in")
		}
		if len(over) == n {
			break
		}
	}
	assert.Zero(t, batch.exit(t))
	assert.Contains(t, batch.text(), "48 of 48 tasks accepted")
	runs := r.check("real", n, out)
	assert.LessOrEqual(t, runs, n+places, "more than what the killed worker had has run twice")
	t.Logf("%d tasks, their commands ran %d times, %s", n, runs, time.Since(began).Round(time.Second))
	for _, name := range names {
		require.NoError(t, r.workers[name].Process.Signal(syscall.SIGTERM))
	}
	for _, name := range names {
		assert.Zero(t, r.workers[name].exit(t), name)
	}
}

// clustered are three servers, each a process.
type clustered struct {
	urls string
	all  map[string]*exec.Cmd
}

func cluster(t *testing.T, port int) *clustered {
	t.Helper()
	c, dir := &clustered{all: map[string]*exec.Cmd{}}, t.TempDir()
	exe, err := os.Executable()
	require.NoError(t, err)
	for i := range 3 {
		s := exec.CommandContext(t.Context(), exe)
		s.Env = append(os.Environ(), fmt.Sprintf("%s=%d,%d,%s", nodeEnv, i, port, dir))
		s.Stderr = os.Stderr
		require.NoError(t, s.Start())
		t.Cleanup(func() { _ = s.Process.Kill(); _ = s.Wait() })
		c.all[fmt.Sprint("n", i)] = s
		c.urls += fmt.Sprintf(",nats://127.0.0.1:%d", port+i)
	}
	c.urls = c.urls[1:]
	require.Eventually(t, func() bool {
		nc, err := troupenats.Connect(c.urls)
		if err == nil {
			nc.Close()
		}
		return err == nil
	}, 2*time.Minute, 100*time.Millisecond)
	return c
}

func (c *clustered) kill(t *testing.T, name string) {
	t.Helper()
	require.Contains(t, c.all, name)
	require.NoError(t, c.all[name].Process.Kill())
	_ = c.all[name].Wait()
}
