package troupenats

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/contrib/nats/embedded"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/fleet/queue"
	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/supervisor"
)

// A test starts this program as a worker, or as an agent. markEnv is in the environment of
// each process that an agent of a worker starts.
const (
	workerEnv = "TROUPE_NATS_TEST_WORKER"
	agentEnv  = "TROUPE_NATS_TEST_AGENT"
	markEnv   = "TROUPE_NATS_TEST_MARK"
)

var _ = func() bool { roles[workerEnv], roles[agentEnv] = workerMain, agentMain; return true }()

// spec is a worker of a job.
type spec struct {
	URL, Job, Dir, Name, Log string
	Tasks, Places            int
	TTL, Work                time.Duration
	Above                    uint64
	Processes                bool // its agents are processes, each of which leaves one behind
	Share                    fleet.Share
	Ahead                    time.Duration // of its clock
	Protocol                 string
}

// ahead is a clock that is wrong.
type ahead struct {
	clock.Clock

	by time.Duration
}

func (a ahead) Now() time.Time { return a.Clock.Now().Add(a.by) }

func agentMain(work string) {
	d, err := time.ParseDuration(work)
	if err != nil {
		panic(err)
	}
	agent.Main(scripted.New(
		scripted.WithScript(&scripted.Script{Transcript: true, Default: []scripted.Step{&scripted.Spawn{}, scripted.Delay(d), scripted.Text("done: ${prompt}")}}),
		scripted.WithSpawn(func(scripted.Child) error {
			left := exec.Command("sleep", "300") //nolint:noctx // it is to outlive the agent
			left.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			return left.Start()
		})))
}

func workerMain(text string) {
	var s spec
	err := json.Unmarshal([]byte(text), &s)
	if err == nil {
		err = s.run(context.Background())
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, s.Name, err)
		os.Exit(3)
	}
}

func (s spec) run(ctx context.Context) error {
	nc, err := Connect(s.URL)
	for ; err != nil; nc, err = Connect(s.URL) { // the servers may still start
		time.Sleep(50 * time.Millisecond)
	}
	defer nc.Close()
	cfg := Config{Job: s.Job, TTL: s.TTL, Above: s.Above, Try: time.Second, silence: 2 * time.Second, protocol: s.Protocol}
	q, err := Open(ctx, nc, cfg)
	if err != nil {
		return err
	}
	defer q.Close()
	files, err := OpenFiles(ctx, nc, cfg)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(s.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	rc := runtime.Config{Logger: slog.New(slog.DiscardHandler)}
	if s.Ahead != 0 {
		rc.Clock = ahead{clock.New(), s.Ahead}
	}
	rt, err := runtime.New(rc)
	if err != nil {
		return err
	}
	defer func() { _ = rt.Shutdown(context.Background()) }()
	_, missing := os.Stat(filepath.Join(s.Dir, journal.Name))
	j := fleet.Job{
		Concurrency: s.Places, Out: s.Dir, Resume: missing == nil, Queue: q, Files: files, Share: s.Share,
		Worker: fmt.Sprintf("%s-%d", s.Name, os.Getpid()), Options: s.options(rt),
		Backoff: supervisor.Backoff{Initial: 100 * time.Millisecond, Max: 100 * time.Millisecond},
		OnEvent: func(e fleet.Event) {
			if e.Kind == fleet.EventStarted {
				_, _ = fmt.Fprintln(log, s.Name, e.Task)
			}
		},
	}
	for i := range s.Tasks {
		j.Tasks = append(j.Tasks, fleet.Task{ID: fmt.Sprint("t", i), Prompt: fmt.Sprint("do ", i)})
	}
	for r, err := range fleet.Run(ctx, j) {
		if err != nil {
			return err
		}
		if !r.OK() {
			return fmt.Errorf("%s is %s: %s", r.ID, r.Status, r.Error)
		}
	}
	return nil
}

func (s spec) options(rt *runtime.Runtime) *sdk.Options {
	if s.Processes {
		exe, err := os.Executable()
		if err != nil {
			panic(err)
		}
		return &sdk.Options{
			Runtime: rt, Backend: sdk.Claude(sdk.ClaudeConfig{Path: exe}), Policy: &policy.Rules{Default: policy.Deny},
			Env: map[string]string{agentEnv: s.Work.String(), markEnv: s.mark(), "HOME": filepath.Join(s.Dir, "..", "home"), "ANTHROPIC_API_KEY": "k"},
		}
	}
	steps := []scripted.Step{scripted.Delay(s.Work), scripted.Text("done: ${prompt}")}
	return &sdk.Options{Runtime: rt, Backend: scripted.New(scripted.WithScript(&scripted.Script{Transcript: true, Default: steps}), scripted.WithHistory(&scripted.MemoryHistory{}))}
}

func (s spec) mark() string { return s.Log + " " + s.Name }

// marked are the processes that agents of workers have started; name "" is for all workers.
func (m *machines) marked(name string) (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range all {
		env, _ := os.ReadFile(f) // or it has ended
		if !bytes.Contains(env, []byte(markEnv+"="+m.spec.Log+" "+name)) {
			continue
		}
		pid, _ := strconv.Atoi(strings.Split(f, "/")[2])
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if len(stat) > 0 && !bytes.Contains(stat, []byte(") Z ")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// machines is a job on several workers, each a process.
type machines struct {
	t    *testing.T
	spec spec
	dir  string
	q    *Queue // the test's
	more int    // starts that the deaths may cost

	mu   sync.Mutex
	crew map[string]*worker

	steps []step
}

// worker is a process.
type worker struct {
	*exec.Cmd

	stderr bytes.Buffer
	ended  chan error
}

// step is what happens once so many tasks are over.
type step struct {
	over int
	do   func()
}

// job starts a job of n tasks on servers that URLs name. Its workers are started by hire.
func (m *machines) begin(t *testing.T, urls string, cfg Config) {
	t.Helper()
	m.t, m.dir, m.crew = t, t.TempDir(), map[string]*worker{}
	m.spec.URL, m.spec.Job, m.spec.TTL, m.spec.Log = urls, cfg.Job, cfg.TTL, filepath.Join(m.dir, "starts.log")
	nc := reach(t, urls)
	m.q = opened(t, nc, cfg)
	t.Cleanup(func() {
		for _, pid := range m.marked("") {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
}

// hire starts workers, also again after their end.
func (m *machines) hire(names ...string) {
	for _, name := range names {
		m.hireAs(name, func(*spec) {})
	}
}

func (m *machines) hireAs(name string, change func(*spec)) {
	s := m.spec
	s.Name, s.Dir = name, filepath.Join(m.dir, name)
	change(&s)
	text, err := json.Marshal(s)
	require.NoError(m.t, err)
	exe, err := os.Executable()
	require.NoError(m.t, err)
	w := &worker{Cmd: exec.Command(exe), ended: make(chan error, 1)} //nolint:noctx // the cleanup ends it
	w.Env = append(os.Environ(), workerEnv+"="+string(text))
	w.Cmd.Stderr = &w.stderr
	require.NoError(m.t, w.Start())
	go func() { w.ended <- w.Wait() }()
	m.t.Cleanup(func() { _ = w.Process.Kill() })
	m.mu.Lock()
	defer m.mu.Unlock()
	m.crew[name] = w
}

// kill ends a worker, which may have as many leases as places.
func (m *machines) kill(name string) {
	m.mu.Lock()
	w := m.crew[name]
	delete(m.crew, name)
	m.mu.Unlock()
	_ = w.Process.Kill()
	<-w.ended //nolint:errcheck // it was killed
	m.more += m.spec.Places
}

func (m *machines) signal(name string, sig os.Signal) {
	m.mu.Lock()
	defer m.mu.Unlock()
	assert.NoError(m.t, m.crew[name].Process.Signal(sig))
}

// at has something happen once a part of all tasks is over.
func (m *machines) at(part float64, do func()) {
	m.steps = append(m.steps, step{max(1, int(part*float64(m.spec.Tasks))), do})
}

// follow waits until all tasks are over in the queue.
func (m *machines) follow() map[string]queue.Change {
	m.t.Helper()
	over := map[string]queue.Change{}
	ctx, stop := context.WithTimeout(m.t.Context(), 2*time.Minute)
	defer stop()
	for c, err := range m.q.Watch(ctx) {
		require.NoError(m.t, err)
		if c.State == queue.Over {
			if before, twice := over[c.Task]; twice {
				assert.Equal(m.t, before, c, "two results")
			}
			over[c.Task] = c
		}
		for len(m.steps) > 0 && len(over) >= m.steps[0].over {
			do := m.steps[0].do
			m.steps = m.steps[1:]
			do()
		}
		if len(over) == m.spec.Tasks {
			return over
		}
	}
	require.Fail(m.t, "not all tasks are over", "%d of %d", len(over), m.spec.Tasks)
	return nil
}

// result is what all programs must have of a task.
type result struct {
	Fence        uint64
	Worker, Text string
}

// check waits for the workers, and compares what each has: one result for each task, the same
// everywhere; no process of an agent lives.
func (m *machines) check(over map[string]queue.Change) {
	m.t.Helper()
	want, fences := map[string]result{}, map[uint64]bool{}
	for task, c := range over {
		var r fleet.TaskResult
		require.NoError(m.t, json.Unmarshal(c.Result, &r))
		want[task] = result{c.Fence, r.Worker, r.Text}
		said, _, _ := strings.Cut(r.Text, "\n") // more lines are of an attempt before
		assert.Equal(m.t, "done: do "+task[1:], said)
		assert.False(m.t, fences[c.Fence], "two results with fence %d", c.Fence)
		fences[c.Fence] = true
	}
	for name, w := range m.crew {
		select {
		case err := <-w.ended:
			require.NoError(m.t, err, "%s: %s", name, w.stderr.String())
		case <-time.After(time.Minute):
			require.Fail(m.t, "the worker does not end", "%s: %s", name, w.stderr.String())
		}
		assert.Equal(m.t, want, resultsIn(m.t, filepath.Join(m.dir, name)), name)
	}
	started, err := os.ReadFile(m.spec.Log)
	require.NoError(m.t, err)
	n := bytes.Count(started, []byte("\n"))
	m.t.Logf("%d tasks, %d starts", m.spec.Tasks, n)
	assert.LessOrEqual(m.t, n, m.spec.Tasks+m.more, "starts")
	assert.Eventually(m.t, func() bool { return len(m.marked("")) == 0 }, time.Minute, 50*time.Millisecond, "processes of agents that live")
}

func resultsIn(t *testing.T, dir string) map[string]result {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "results.jsonl"))
	require.NoError(t, err)
	all := map[string]result{}
	for line := range strings.Lines(string(text)) {
		var r fleet.TaskResult
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		assert.NotContains(t, all, r.ID, "two lines")
		all[r.ID] = result{r.Fence, r.Worker, r.Text}
	}
	return all
}

// onOne is the URL of a server in this process.
func onOne(t *testing.T, store int64) (url string) {
	t.Helper()
	s, err := embedded.Start(embedded.Config{Dir: t.TempDir(), Host: "127.0.0.1", MaxStore: store})
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	return s.URL()
}

// deaths are the rows of the table in docs/machines.md: what happens to a job of some tasks.
var deaths = []struct {
	name  string
	short bool // also without TROUPE_FULL, with a third of the tasks
	run   func(t *testing.T, m *machines)
}{
	{"a worker is killed and comes back", true, func(t *testing.T, m *machines) {
		m.spec.Processes = true
		m.begin(t, onOne(t, 0), m.config(3*time.Second))
		m.hire("w0", "w1")
		m.at(1./3, func() {
			m.kill("w0")
			m.hire("w0")
		})
		m.check(m.follow())
	}},
	{"a machine with its disk is lost", false, func(t *testing.T, m *machines) {
		m.spec.Processes = true
		m.begin(t, onOne(t, 0), m.config(3*time.Second))
		m.hire("w0", "w1", "w2")
		m.at(1./3, func() {
			m.kill("w0")
			for _, pid := range m.marked("w0") {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			assert.NoError(t, os.RemoveAll(filepath.Join(m.dir, "w0")))
		})
		m.check(m.follow())
	}},
	{"a worker stands still for two leases", true, func(t *testing.T, m *machines) {
		m.begin(t, onOne(t, 0), m.config(4*time.Second)) // the other worker keeps its leases, on a busy machine, too
		m.hire("w0", "w1")
		m.at(1./3, func() {
			m.more += m.spec.Places
			m.signal("w0", syscall.SIGSTOP)
			time.AfterFunc(2*m.spec.TTL, func() { m.signal("w0", syscall.SIGCONT) })
		})
		m.check(m.follow())
	}},
	{"the leader of the stream is killed", true, func(t *testing.T, m *machines) {
		all, urls := cluster(t, 15322)
		m.begin(t, urls, m.config(12*time.Second))
		m.hire("w0", "w1")
		m.at(1./2, func() {
			m.more += 2 * m.spec.Places // on a machine that is too slow
			all.kill(t, all.leader(t, m.q))
		})
		m.check(m.follow())
	}},
	{"two of three servers are killed and come back", false, func(t *testing.T, m *machines) {
		all, urls := cluster(t, 15422)
		m.begin(t, urls, m.config(3*time.Second))
		m.hire("w0", "w1", "w2")
		m.at(1./3, func() {
			m.more += 2 * 3 * m.spec.Places // again if the first leader after that is not the last one
			all.kill(t, 0)
			all.kill(t, 1)
			time.AfterFunc(2*m.spec.TTL, func() { all.start(t, 0); all.start(t, 1) })
		})
		m.check(m.follow())
	}},
	{"the only server is killed again and again", false, func(t *testing.T, m *machines) {
		port, dir := freePort(t), t.TempDir()
		server := process(t, "alone", port, dir)
		m.begin(t, fmt.Sprintf("nats://127.0.0.1:%d", port), m.config(5*time.Second))
		m.hire("w0", "w1", "w2")
		for i := range 4 {
			m.at(float64(i+1)/6, func() {
				m.more += 3 * m.spec.Places // 0 unless the machine is too slow
				assert.NoError(t, server.Process.Kill())
				_ = server.Wait()
				time.Sleep(1500 * time.Millisecond)
				server = process(t, "alone", port, dir)
			})
		}
		m.check(m.follow())
	}},
	{"the stream is deleted", false, streamDeleted},
	{"the submitter is killed, and another one attaches", true, func(t *testing.T, m *machines) {
		m.begin(t, onOne(t, 0), m.config(3*time.Second))
		m.hireAs("submitter", func(s *spec) { s.Share = fleet.ShareSubmit })
		m.hireAs("w0", func(s *spec) { s.Share = fleet.ShareWork })
		m.hireAs("w1", func(s *spec) { s.Share = fleet.ShareWork })
		m.at(1./3, func() {
			m.kill("submitter")
			m.hireAs("attached", func(s *spec) { s.Share = fleet.ShareSubmit })
		})
		over := m.follow()
		for _, name := range []string{"w0", "w1"} { // they keep what is theirs
			assert.NoError(t, <-m.crew[name].ended, m.crew[name].stderr.String())
			delete(m.crew, name)
		}
		m.check(over)
	}},
	{"the network of a worker is away for two leases", false, func(t *testing.T, m *machines) {
		url := onOne(t, 0)
		p := newProxy(t, url)
		m.begin(t, url, m.config(3*time.Second))
		m.hireAs("w0", func(s *spec) { s.URL = p.url() })
		m.hire("w1")
		m.at(1./3, func() {
			m.more += m.spec.Places
			restore := p.stop()
			time.AfterFunc(2*m.spec.TTL, restore)
		})
		m.check(m.follow())
	}},
	{"answers to a worker are lost", false, func(t *testing.T, m *machines) {
		url := onOne(t, 0)
		p := newProxy(t, url)
		m.begin(t, url, m.config(3*time.Second))
		m.hireAs("w0", func(s *spec) { s.URL = p.url() })
		m.hire("w1")
		lost := 0
		stop := p.deaf(200*time.Millisecond, 300*time.Millisecond, func() { lost++ })
		over := m.follow()
		stop()
		m.more = m.spec.Places * lost
		assert.Greater(t, lost, 2)
		m.check(over)
	}},
	{"a worker of the next version comes", false, func(t *testing.T, m *machines) {
		m.begin(t, onOne(t, 0), m.config(3*time.Second))
		m.hire("w0", "w1")
		m.at(1./3, func() { m.hireAs("next", func(s *spec) { s.Protocol = "2" }) })
		over := m.follow()
		next := m.crew["next"]
		delete(m.crew, "next")
		require.Error(t, <-next.ended)
		assert.Contains(t, next.stderr.String(), ErrProtocol.Error())
		m.check(over)
	}},
	{"the clocks of the workers are wrong", false, func(t *testing.T, m *machines) {
		m.begin(t, onOne(t, 0), m.config(2*time.Second))
		m.hireAs("w0", func(s *spec) { s.Ahead = time.Hour })
		m.hireAs("w1", func(s *spec) { s.Ahead = -time.Hour })
		m.check(m.follow())
	}},
	{"a server ends leases early", false, func(t *testing.T, m *machines) { // as one with a clock that is ahead
		cfg := m.config(2 * time.Second)
		cfg.deletable = true
		m.begin(t, onOne(t, 0), cfg)
		m.hire("w0", "w1")
		for i := range 5 {
			m.at(float64(i+1)/8, func() {
				for task, r := range m.q.mirror.leased() {
					_ = m.q.stream.DeleteMsg(t.Context(), r.seq) // it may be another one by now
					m.q.mirror.look(task, r)
					m.more++
				}
			})
		}
		m.check(m.follow())
	}},
	{"the clocks of the servers are apart", false, serversApart},
	{"the servers are full for a while", false, func(t *testing.T, m *machines) {
		url := onOne(t, 4<<20)
		m.begin(t, url, m.config(5*time.Second))
		m.hire("w0", "w1")
		nc, junk := reach(t, url), job()
		m.at(1./3, func() {
			m.more += 2 * m.spec.Places
			f, err := OpenFiles(t.Context(), nc, Config{Job: junk})
			for i := 0; err == nil && i < 100; i++ {
				err = f.Put(t.Context(), fmt.Sprint(i), noise(200<<10))
			}
			assert.ErrorIs(t, err, ErrFull)
			time.AfterFunc(2*time.Second, func() { assert.NoError(t, Remove(context.WithoutCancel(t.Context()), nc, junk)) })
		})
		m.check(m.follow())
	}},
}

func (m *machines) config(ttl time.Duration) Config { return Config{Job: job(), TTL: ttl} }

// streamDeleted has the workers stop and be started again: results are those of their journals.
func streamDeleted(t *testing.T, m *machines) {
	url := onOne(t, 0)
	cfg := m.config(3 * time.Second)
	m.begin(t, url, cfg)
	m.hire("w0", "w1")
	nc := reach(t, url)
	m.at(1./2, func() { assert.NoError(t, Remove(t.Context(), nc, cfg.Job)) })
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	before := map[string]uint64{}
	var failed error
	for c, err := range m.q.Watch(ctx) {
		if failed = err; err != nil {
			break
		}
		if c.State == queue.Over {
			before[c.Task] = c.Fence
			cfg.Above = max(cfg.Above, c.Fence)
		}
		if len(m.steps) > 0 && len(before) >= m.steps[0].over {
			m.steps[0].do()
			m.steps = nil
		}
	}
	require.ErrorIs(t, failed, ErrGone)
	for name, w := range m.crew {
		require.Error(t, <-w.ended, name)
		assert.Contains(t, w.stderr.String(), ErrGone.Error())
	}
	cfg.Above += 1000 // what the journals have may be above what the test has seen
	m.spec.Above = cfg.Above
	m.q = opened(t, nc, cfg)
	m.more = m.spec.Tasks // results that no journal has
	m.hire("w0", "w1")
	over := m.follow()
	kept := 0
	for task, c := range over {
		if c.Fence > cfg.Above {
			continue
		}
		kept++
		if fence, seen := before[task]; seen {
			assert.Equal(t, fence, c.Fence, task)
		}
	}
	assert.Greater(t, kept, m.spec.Tasks/4, "results that the journals had")
	m.check(over)
}

// Each task has one result, and all programs have the same one, after each of the deaths.
func TestWhoDies(t *testing.T) {
	t.Parallel()
	processes(t)
	for _, d := range deaths {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			m := &machines{spec: spec{Tasks: 60, Places: 4, Work: 300 * time.Millisecond}}
			if !d.short {
				onlyFull(t)
			}
			if os.Getenv("TROUPE_FULL") == "" {
				m.spec.Tasks, m.spec.Places, m.spec.Work = 18, 2, 200*time.Millisecond
			}
			d.run(t, m)
		})
	}
}

// leader is the number of the server that leads the stream.
func (c *clustered) leader(t *testing.T, q *Queue) int {
	t.Helper()
	info, err := q.info(t.Context())
	require.NoError(t, err)
	n, err := strconv.Atoi(strings.TrimPrefix(info.Cluster.Leader, "n"))
	require.NoError(t, err)
	return n
}
