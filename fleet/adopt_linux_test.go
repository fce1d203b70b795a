package fleet_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// containers starts agents as an engine of containers does: no process of theirs carries a
// marker of Troupe, and none ends with the program that started it. The markers are in files, one for
// each agent.
type containers struct{ dir string }

// container is an agent of containers, started or adopted. All of its processes have its name
// in their environment.
type container struct {
	name   string
	pid    int
	seen   []int // sessions of its processes
	in     io.WriteCloser
	out    io.ReadCloser
	exited chan struct{}
}

func (c *containers) Spawn(_ context.Context, cmd session.Command) (session.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := exec.Command(self, cmd.Args...)
	p.Dir, p.SysProcAttr = cmd.Dir, &syscall.SysProcAttr{Setsid: true}
	var markers []string
	for _, v := range cmd.Env {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "TROUPE_LAUNCH_") {
			markers = append(markers, name)
		} else {
			p.Env = append(p.Env, v)
		}
	}
	f, err := os.CreateTemp(c.dir, "container-")
	if err != nil {
		return nil, err
	}
	_, err = f.WriteString(strings.Join(markers, "\n"))
	name := filepath.Base(f.Name())
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	p.Env = append(p.Env, "TROUPE_TEST_CONTAINER="+name)
	in, err := p.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.Start(); err != nil {
		return nil, err
	}
	k := &container{name: name, pid: p.Process.Pid, in: in, out: out, exited: make(chan struct{})}
	go func() {
		defer close(k.exited)
		_, _ = p.Process.Wait()
	}()
	return k, nil
}

func (c *containers) Adopt(_ context.Context, marker string) ([]session.Process, error) {
	files, err := filepath.Glob(filepath.Join(c.dir, "container-*"))
	if err != nil {
		return nil, err
	}
	var all []session.Process
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		k := &container{name: filepath.Base(file), exited: make(chan struct{})}
		if pids := k.processes(); slices.Contains(strings.Split(string(text), "\n"), marker) && len(pids) > 0 {
			k.pid = pids[0]
			all = append(all, k)
		}
	}
	return all, nil
}

// processes finds what runs in the container: what has its name, or is in the session of such a process, since
// a process that begins another program has no environment for a moment.
func (k *container) processes() (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, again := range []bool{false, true} {
		for _, dir := range all {
			pid, err := strconv.Atoi(filepath.Base(dir))
			if err != nil || slices.Contains(pids, pid) {
				continue
			}
			if of := sessionOf(dir); again && of > 0 && slices.Contains(k.seen, of) {
				pids = append(pids, pid)
			} else if env, err := os.ReadFile(filepath.Join(dir, "environ")); err == nil && slices.Contains(strings.Split(string(env), "\x00"), "TROUPE_TEST_CONTAINER="+k.name) {
				pids, k.seen = append(pids, pid), append(k.seen, of)
			}
		}
	}
	return pids
}

// sessionOf is the session of a process that has not ended; else 0.
func sessionOf(dir string) int {
	stat, _ := os.ReadFile(filepath.Join(dir, "stat"))
	_, rest, _ := strings.Cut(string(stat), ") ")
	if f := strings.Fields(rest); len(f) > 3 && f[0] != "Z" {
		id, _ := strconv.Atoi(f[3])
		return id
	}
	return 0
}

func (k *container) PID() int                    { return k.pid }
func (k *container) Stdin() io.WriteCloser       { return k.in }
func (k *container) Stdout() io.Reader           { return k.out }
func (k *container) Stderr() io.Reader           { return nil }
func (k *container) Exited() <-chan struct{}     { return k.exited }
func (k *container) Signal(session.Signal) error { return nil }

func (k *container) Kill() error {
	for _, pid := range k.processes() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	if k.in == nil { // adopted: the process is nobody's child here
		close(k.exited)
	}
	return nil
}

func (k *container) Sweep(ctx context.Context) ([]session.ProcInfo, error) {
	for empty := 0; empty < 5; empty++ {
		for _, pid := range k.processes() {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			empty = -1
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return nil, nil
}

func (k *container) CloseOutput() {
	if k.out != nil {
		_ = k.out.Close()
	}
}

func (k *container) Reap() (session.ExitStatus, error) { return session.ExitStatus{}, nil }

// containedJob is a job whose agents run in containers.
func containedJob(dir string) fleet.Job {
	exe, _ := os.Executable()
	return fast(fleet.Job{
		Tasks: tasks(1), Out: filepath.Join(dir, "out"),
		Options: &sdk.Options{
			Backend: sdk.Claude(sdk.ClaudeConfig{Path: exe}), Spawner: &containers{dir},
			Env: map[string]string{agentEnv: "1", "HOME": filepath.Join(dir, "home"), "ANTHROPIC_API_KEY": "k", "TROUPE_TEST_DIR": dir},
		},
	})
}

// containedEnv makes the test's program run containedJob with slow agents, in the directory
// that it names.
const containedEnv = "TROUPE_FLEET_TEST_CONTAINED"

func containedMain() {
	dir := os.Getenv(containedEnv)
	_ = os.Unsetenv(containedEnv)
	job := containedJob(dir)
	job.Options.Env[slowEnv] = stays // the death of the host closes its stdin
	for _, err := range fleet.Run(context.Background(), job) {
		if err != nil {
			os.Exit(3)
		}
	}
}

// Agents that outlive their host where no marker is found are ended before the next host
// starts anything.
func TestAgentsThatOutliveTheHostAreAdopted(t *testing.T) {
	t.Parallel()
	for name, once := range map[string]bool{"the spawner of the job": false, "that of a task": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			host := exec.Command(os.Args[0], "-test.run=^$")
			host.Env = append(os.Environ(), containedEnv+"="+dir)
			require.NoError(t, host.Start())
			busy := func() bool { // the agent works, and has started a process
				transcript, _ := os.ReadFile(filepath.Join(dir, "out", "transcripts", "t0.1.jsonl"))
				return len(transcript) > 0 && len(alive(t, dir)) >= 2
			}
			require.Eventually(t, busy, time.Minute, 5*time.Millisecond, "the agent and what it has started")
			require.NoError(t, host.Process.Kill())
			_ = host.Wait() // killed
			left := alive(t, dir)
			require.NotEmpty(t, left, "the agent outlives its host")

			job := containedJob(dir)
			job.Resume = true
			spawned := &adopting{containers: containers{dir}, alive: func() []string { return alive(t, dir) }}
			if job.Options.Spawner = spawned; once {
				job.Options.Spawner = nil
				job.Configure = func(_ context.Context, _ *fleet.Task, o *sdk.Options) error {
					o.Spawner = spawned
					return nil
				}
			}
			results, err := collect(t, job)
			require.NoError(t, err)
			assert.Equal(t, fleet.Accepted, results["t0"].Status, results["t0"].Error)
			assert.Positive(t, spawned.starts)
			assert.Empty(t, spawned.before, "what ran when the next agent was started")
			assert.Empty(t, alive(t, dir))
			assert.Contains(t, read(t, dir, "out", journal.Name), `"kind":"starting"`)
		})
	}
}

// adopting notes what runs when its first agent starts.
type adopting struct {
	containers
	alive  func() []string
	starts int
	before []string
}

func (a *adopting) Spawn(ctx context.Context, c session.Command) (session.Process, error) {
	if a.starts++; a.starts == 1 {
		a.before = a.alive()
	}
	return a.containers.Spawn(ctx, c)
}

// A spawner that cannot say what it has left stops the job: nothing starts.
func TestASpawnerThatCannotAdopt(t *testing.T) {
	t.Parallel()
	job := fleet.Job{Tasks: tasks(1), Options: backend(turn(scripted.Delay(time.Hour))), Out: t.TempDir()}
	h, err := fleet.Start(t.Context(), fast(job))
	require.NoError(t, err)
	h.Cancel()
	<-h.Done()
	job.Resume = true
	job.Options = backend()
	job.Options.Spawner = broken{}
	for _, err = range fleet.Run(t.Context(), job) {
	}
	require.ErrorContains(t, err, "cannot be adopted: the engine is down")
	require.ErrorAs(t, err, new(*fleet.StoppedError))
}

type broken struct{ session.Spawner }

func (broken) Adopt(context.Context, string) ([]session.Process, error) {
	return nil, errors.New("the engine is down")
}
