package fleet_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/queue"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/modeltest"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// work is what the agent of a job that moves does in its first turn.
const work = `git config user.name t; git config user.email t@example.com; echo two >a.txt; git commit -qam "by the agent"; echo three >>a.txt; printf 'echo hi' >run.sh; chmod 755 run.sh; mkdir -p d; echo new >d/n; ln -s n d/l; ln -s /etc/passwd out; rm -f gone.txt dropped.txt`

// mover is one of the programs of a job whose task has two turns.
type mover struct {
	*fleet.Handle
	model  *modeltest.Server
	out    string
	second chan struct{} // the model is asked in the second turn
	stays  bool          // it gives no answer then
	ran    atomic.Int32  // commands
}

// mortal is a queue that a program loses when it dies, and its lease with it.
type mortal struct {
	queue.Queue
	ttl  time.Duration // as the program knows it; 0: that of the queue
	dead atomic.Bool
}

var errDead = errors.New("the program is dead")

// leaping is the clock of a queue whose leases end when a test says so, and not because a machine is slow.
type leaping struct {
	mu     sync.Mutex
	now    time.Time
	timers []*leapTimer
}

type leapTimer struct {
	at      time.Time
	fn      func()
	stopped atomic.Bool
}

func (c *leaping) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *leaping) AfterFunc(d time.Duration, fn func()) session.Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &leapTimer{at: c.now.Add(d), fn: fn}
	c.timers = append(c.timers, t)
	return t
}

func (t *leapTimer) Stop() bool { return !t.stopped.Swap(true) }

func (c *leaping) leap(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	due := slices.Clone(c.timers)
	c.mu.Unlock()
	for _, t := range due {
		if !t.at.After(c.Now()) && t.Stop() {
			t.fn()
		}
	}
}

func (q *mortal) Note(ctx context.Context, l queue.Lease, note json.RawMessage) error {
	if q.dead.Load() {
		return errDead
	}
	return q.Queue.Note(ctx, l, note)
}

func (q *mortal) Release(ctx context.Context, l queue.Lease) error {
	if q.dead.Load() {
		return errDead
	}
	return q.Queue.Release(ctx, l)
}

func (q *mortal) Extend(ctx context.Context, leases ...queue.Lease) []error {
	if q.dead.Load() {
		return slices.Repeat([]error{queue.ErrLeaseLost}, len(leases))
	}
	return q.Queue.Extend(ctx, leases...)
}

func (q *mortal) Lease(ctx context.Context, task, worker string) (queue.Lease, error) {
	if q.dead.Load() {
		return queue.Lease{}, &queue.LeasedError{Task: task, Worker: "another", TTL: time.Hour}
	}
	l, err := q.Queue.Lease(ctx, task, worker)
	l.TTL = cmp.Or(q.ttl, l.TTL)
	return l, err
}

func (q *mortal) Watch(ctx context.Context) iter.Seq2[queue.Change, error] {
	return func(yield func(queue.Change, error) bool) {
		for c, err := range q.Queue.Watch(ctx) {
			if !q.dead.Load() && !yield(c, err) {
				return
			}
		}
	}
}

// inSecond reports whether a request is that of the second turn.
func inSecond(r *modeltest.Request) bool {
	text := ""
	for _, b := range r.Messages[len(r.Messages)-1].Blocks {
		text += b.Text
	}
	return strings.Contains(text, "second") && len(r.Results()) == 0
}

func (m *mover) fault(r *modeltest.Request) *modeltest.Fault {
	if !inSecond(r) {
		return nil
	}
	m.second <- struct{}{}
	if m.stays {
		return &modeltest.Fault{Delay: time.Hour}
	}
	return nil
}

func (m *mover) said(r *modeltest.Request) *modeltest.Answer {
	switch {
	case inSecond(r):
		return modeltest.Say(modeltest.Text("done after " + strings.Join(heard(r), ", ")))
	case len(r.Results()) == 0:
		m.ran.Add(1)
		return modeltest.Say(modeltest.Call("Bash", map[string]any{"command": work, "description": "work"}))
	}
	return modeltest.Say(modeltest.Text("first is done"))
}

// heard is what the agent has said before, as the model gets it.
func heard(r *modeltest.Request) (all []string) {
	for _, m := range r.Messages {
		for _, b := range m.Blocks {
			if strings.Contains(b.Text, "is done") {
				all = append(all, b.Text)
			}
		}
	}
	return all
}

// start starts a program in a separate directory, with a copy of the repository.
func (m *mover) start(t *testing.T, name, repo string, q queue.Queue, files queue.Files, change ...func(*fleet.Job)) {
	t.Helper()
	m.model, m.second = &modeltest.Server{Script: m.said, Fault: m.fault}, make(chan struct{}, 8)
	dir := t.TempDir()
	if m.out == "" {
		m.out = filepath.Join(dir, "out")
	}
	clone := filepath.Join(dir, "repo")
	shell(t, dir, "git clone -q "+repo+" repo; cd repo; git checkout -q --detach")
	job := fast(fleet.Job{
		Tasks: []fleet.Task{{ID: "t0", Prompt: "first", Turns: []string{"second"}}}, Out: m.out, Queue: q, Files: files, Worker: name, Move: true,
		Workspace: &fleet.Workspace{Kind: fleet.WorkspaceWorktree, From: clone, Setup: "echo setup >setup.txt; echo setup >dropped.txt"},
		Options: &sdk.Options{Backend: embedded.New(embedded.Config{
			Model: m.model.Anthropic(model.Config{}), Name: "claude-sonnet-4-5", Dir: filepath.Join(dir, "sessions"),
		}), AllowedTools: []string{"Bash"}, Env: map[string]string{"HOME": t.TempDir()}}, // no startup file of the user's
	})
	for _, c := range change {
		c(&job)
	}
	var err error
	m.Handle, err = fleet.Start(t.Context(), job)
	require.NoError(t, err)
}

func (m *mover) result(t *testing.T) fleet.TaskResult {
	t.Helper()
	var last fleet.TaskResult
	for r, err := range m.Results(t.Context()) {
		require.NoError(t, err)
		last = r
	}
	require.Equal(t, fleet.Accepted, last.Status, last.Error)
	return last
}

func files(t *testing.T) queue.Files {
	t.Helper()
	return queue.DirFiles(t.TempDir())
}

// output is what a command prints.
func output(t *testing.T, dir, line string) string {
	t.Helper()
	c := exec.Command("sh", "-ec", line)
	c.Dir = dir
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

const stateOfWork = `git log --format=%s; git status --porcelain; cat a.txt d/n setup.txt; readlink d/l; stat -c %a run.sh`

// A task that a program gives back in the middle of a turn continues in another one, with its session, its
// commits and its files, in each kind of workspace.
func TestATaskMoves(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*fleet.Job){
		"a worktree": func(*fleet.Job) {},
		"a copy":     func(j *fleet.Job) { j.Workspace.Kind = fleet.WorkspaceCopy },
		"not a repository": func(j *fleet.Job) {
			j.Workspace.Kind, j.Workspace.From = fleet.WorkspaceCopy, filepath.Join(j.Workspace.From, "sub")
		},
		"with a wait for it": func(j *fleet.Job) { j.Affinity = time.Hour },
		"a shared directory": func(j *fleet.Job) {
			j.Workspace.Kind = ""
			j.Workspace.Setup = ""
			j.Workspace.From = filepath.Dir(j.Out) + "/repo"
		},
		"changes are looked at": func(j *fleet.Job) { j.Tasks[0].ExpectChange = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo, q, kept := repository(t), memory(), files(t)
			shell(t, repo, "echo x >gone.txt; mkdir sub; echo y >sub/a.txt; git add .; git -c user.name=t -c user.email=t@example.com commit -qm two")
			one, two := mover{stays: true}, mover{}
			one.start(t, "one", repo, q, kept, change)
			<-one.second
			one.Cancel()
			<-one.Done()
			two.start(t, "two", repo, q, kept, change)
			<-two.second
			r := two.result(t)
			assert.Equal(t, "done after first is done", r.Text)
			assert.EqualValues(t, 1, one.ran.Load())
			assert.Zero(t, two.ran.Load(), "the first turn is not made again")
			require.Len(t, r.Attempts, 1)
			a := r.Attempts[0]
			assert.Equal(t, fleet.Mode("moved"), a.Mode)
			assert.Equal(t, "continues the session of worker one after 1 of its turns", a.Note)
			from := filepath.Join(one.out, "workspaces", "t0", "1")
			switch name {
			case "a shared directory":
				return
			case "not a repository":
				assert.Equal(t, strings.ReplaceAll(output(t, from, "cat a.txt d/n setup.txt; ls -A"), "out\n", ""), output(t, r.Workspace, "cat a.txt d/n setup.txt; ls -A"))
				return
			}
			assert.Equal(t, strings.ReplaceAll(output(t, from, stateOfWork), "?? out\n", ""), output(t, r.Workspace, stateOfWork))
			assert.NoFileExists(t, filepath.Join(r.Workspace, "gone.txt"))
			assert.Contains(t, read(t, two.out, r.Diff), "+new")
			assert.Empty(t, output(t, repo, "git status --porcelain"))
		})
	}
}

// A program that dies in the second turn has left what it had after the first one.
func TestATaskMovesAfterADeath(t *testing.T) {
	t.Parallel()
	repo, kept := repository(t), files(t)
	clock := &leaping{now: time.Now()}
	q := queue.NewMemory(queue.MemoryConfig{TTL: time.Minute, Clock: clock})
	mortal := &mortal{Queue: q}
	one, two := mover{stays: true}, mover{}
	one.start(t, "one", repo, mortal, kept)
	<-one.second
	mortal.dead.Store(true)
	one.Kill()
	<-one.Done()
	clock.leap(time.Minute)
	two.start(t, "two", repo, q, kept)
	<-two.second
	r := two.result(t)
	assert.Equal(t, "done after first is done", r.Text)
	assert.Zero(t, two.ran.Load())
	assert.Equal(t, fleet.Mode("moved"), r.Attempts[0].Mode)
	assert.Equal(t, "two\nthree", strings.TrimSpace(read(t, r.Workspace, "a.txt")))
}

// A task goes from one program to another and back: each time with the newest state. A program that comes again in
// its directory continues what it has itself.
func TestATaskMovesBack(t *testing.T) {
	t.Parallel()
	repo, q, kept := repository(t), memory(), files(t)
	one, two, again := mover{stays: true}, mover{stays: true}, mover{}
	one.start(t, "one", repo, q, kept)
	<-one.second
	one.Cancel()
	<-one.Done()
	two.start(t, "two", repo, q, kept)
	<-two.second
	at := filepath.Join(two.out, "workspaces", "t0", "1")
	require.NoError(t, os.WriteFile(filepath.Join(at, "later.txt"), []byte("by two"), 0o600))
	two.Cancel()
	<-two.Done()
	again.out = one.out
	again.start(t, "again", repo, q, kept, func(j *fleet.Job) { j.Resume = true })
	<-again.second
	r := again.result(t)
	require.Len(t, r.Attempts, 2)
	assert.Equal(t, fleet.Mode("moved"), r.Attempts[1].Mode)
	assert.Equal(t, "by two", read(t, r.Workspace, "later.txt"))

	same, once := mover{stays: true}, mover{}
	q = memory()
	same.start(t, "same", repo, q, kept)
	<-same.second
	same.Cancel()
	<-same.Done()
	once.out = same.out
	once.start(t, "once", repo, q, kept, func(j *fleet.Job) { j.Resume = true })
	<-once.second
	r = once.result(t)
	assert.Equal(t, fleet.Mode("resume"), r.Attempts[1].Mode)
	assert.Equal(t, "done after first is done", r.Text)
}

// brokenFiles are files that lose what is kept for moves, or change it.
type brokenFiles struct {
	queue.Files
	change func([]byte) ([]byte, error)
}

func (f brokenFiles) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	r, err := f.Files.Get(ctx, name)
	if err != nil || !strings.Contains(name, "moves/") {
		return r, err
	}
	all, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		return nil, err
	}
	if all, err = f.change(all); err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(all)), nil
}

// A task that cannot be continued begins anew in a new workspace, and the attempt says why.
func TestATaskThatCannotMove(t *testing.T) {
	t.Parallel()
	lost := func([]byte) ([]byte, error) { return nil, errors.New("it is lost") }
	for name, c := range map[string]struct {
		change       func([]byte) ([]byte, error)
		first, other func(*fleet.Job)
		note         string
	}{
		"lost": {lost, nil, nil, "begins anew: what worker one has kept cannot be continued: it is lost"},
		"cut":  {func(b []byte) ([]byte, error) { return b[:len(b)-1500], nil }, nil, nil, "cannot be continued"},
		"without a end": {func(b []byte) ([]byte, error) {
			return append(b[:bytes.Index(b, []byte("end.json"))&^511:len(b)], make([]byte, 1024)...), nil
		}, nil, nil, "its end is missing"},
		"other sources": {nil, nil, func(j *fleet.Job) {
			shell(t, j.Workspace.From, "git -c user.name=t -c user.email=t@example.com commit -q --allow-empty -m other")
		}, "another state of its source"},
		"no session": {nil, func(j *fleet.Job) { j.Options.PersistSession = sdk.Some(false) }, nil, "begins anew: what worker one had done cannot be continued: Options.PersistSession is off"},
		"it is off":  {nil, nil, func(j *fleet.Job) { j.Move = false }, "begins anew: worker one had begun the task, and its session and workspace are there"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo, q, kept := repository(t), memory(), files(t)
			one, two := mover{stays: true}, mover{}
			nothing := func(*fleet.Job) {}
			first, other := c.first, c.other
			if first == nil {
				first = nothing
			}
			if other == nil {
				other = nothing
			}
			one.start(t, "one", repo, q, kept, first)
			<-one.second
			one.Cancel()
			<-one.Done()
			there := kept
			if c.change != nil {
				there = brokenFiles{kept, c.change}
			}
			two.start(t, "two", repo, q, there, other)
			<-two.second
			r := two.result(t)
			a := r.Attempts[0]
			assert.Contains(t, a.Note, c.note)
			assert.Equal(t, fleet.Mode("fresh"), a.Mode)
			assert.EqualValues(t, 1, two.ran.Load(), "both turns are made")
			assert.Equal(t, "done after first is done", r.Text)
			assert.Equal(t, "two\nthree", strings.TrimSpace(read(t, r.Workspace, "a.txt")))
		})
	}
}
