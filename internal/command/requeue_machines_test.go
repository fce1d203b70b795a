package command

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/queue"
)

// oneJob is servers with one job.
type oneJob struct {
	Cluster // nil: the other calls are not made

	entry   JobEntry
	spec    []byte
	tasks   *queue.Memory
	files   queue.Files
	changes chan JobChange

	mu     sync.Mutex
	state  JobState
	log    []string
	opens  func() // as its queue is opened
	before func() // the first Over
	after  func() // the first Over
}

func newOneJob(t *testing.T) *oneJob {
	t.Helper()
	spec, err := submitted(t, `{"id":"t0","prompt":"do"}`, "--agent", script(t, "default: [text: done]\n"))
	require.NoError(t, err)
	raw, err := json.Marshal(spec)
	require.NoError(t, err)
	c := &oneJob{spec: raw, tasks: queue.NewMemory(queue.MemoryConfig{}), files: queue.DirFiles(t.TempDir()), changes: make(chan JobChange), state: JobOpen}
	c.entry = JobEntry{Job: "j", State: JobOpen, Protocol: spec.Protocol, Agent: "scripted", Tasks: 1, Submitted: time.Now()}
	return c
}

func (c *oneJob) Connect(context.Context, Servers) (Cluster, error) { return c, nil }

func (c *oneJob) Listen(context.Context, Servers, string) (Cluster, string, error) {
	return c, "", nil
}
func (c *oneJob) Check(context.Context, Servers) ([]Finding, error) { return nil, nil }

// says notes a call, and where the job stands then.
func (c *oneJob) says(what string, state JobState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log, c.state = append(c.log, what), state
}

func (c *oneJob) said() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.log, ", ")
}

func (c *oneJob) Jobs(context.Context) ([]JobEntry, error) { return []JobEntry{c.entry}, nil }

func (c *oneJob) Watch(ctx context.Context) iter.Seq2[JobChange, error] {
	return func(yield func(JobChange, error) bool) {
		for goes := yield(JobChange{JobEntry: c.entry}, nil); goes; {
			select {
			case change := <-c.changes:
				goes = yield(change, nil)
			case <-ctx.Done():
				return
			}
		}
	}
}

func (c *oneJob) Specification(context.Context, string) ([]byte, error) { return c.spec, nil }

func (c *oneJob) Open(context.Context, JobEntry) (queue.Queue, queue.Files, func(), error) {
	if c.opens != nil {
		c.opens()
	}
	return c.tasks, c.files, func() {}, nil
}

func (c *oneJob) Over(context.Context, string) error {
	before, after := c.before, c.after
	if c.before, c.after = nil, nil; before != nil {
		before()
	}
	if c.says("over", JobOver); after != nil {
		after()
	}
	return nil
}

func (c *oneJob) NotOver(context.Context, string) error {
	c.says("not over", JobOpen)
	return nil
}

func (c *oneJob) Reopen(context.Context, string) error {
	c.says("open", JobOpen)
	return nil
}

func (c *oneJob) Beat(context.Context, HostEntry) error      { return nil }
func (c *oneJob) Leave(context.Context, string) error        { return nil }
func (c *oneJob) Hosts(context.Context) ([]HostEntry, error) { return nil, nil }
func (c *oneJob) Caps(context.Context) ([]Cap, error)        { return nil, nil }
func (c *oneJob) Close()                                     {}
func (c *oneJob) Serve(ctx context.Context, _ string, _ func(context.Context, []byte, io.Writer) error) error {
	<-ctx.Done()
	return nil
}

// requeue does as troupe ctl does; the worker is notified later.
func (c *oneJob) requeue(t *testing.T) {
	t.Helper()
	assert.NoError(t, fleet.Decide(t.Context(), c.tasks, fleet.Order{Op: "requeue", Task: "t0", By: "me"}))
	assert.NoError(t, c.Reopen(t.Context(), "j"))
}

// notify returns once the worker knows of it.
func (c *oneJob) notify() {
	c.changes <- JobChange{JobEntry: c.entry}
	for range 2 { // the loop takes the first of these once it is done with that
		c.changes <- JobChange{Drain: "another"}
	}
}

// A task that is requeued while a worker ends its job is run, and the job is over only after that.
func TestARequeueAtTheEndOfAJob(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		arrange func(t *testing.T, c *oneJob)
		late    bool
		said    string
	}{
		"before the worker says that it is over": {func(t *testing.T, c *oneJob) {
			t.Helper()
			c.before = func() { c.requeue(t); c.notify() }
		}, false, "open, over, not over, not over, over"},
		"after it": {func(t *testing.T, c *oneJob) {
			t.Helper()
			c.after = func() { c.requeue(t); c.notify() }
		}, false, "over, open, not over, not over, over"},
		"before it, and the worker hears of it when the job is gone": {func(t *testing.T, c *oneJob) {
			t.Helper()
			c.before = func() { c.requeue(t) }
		}, true, "open, over, not over, over"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job, w := newOneJob(t), newWorld()
			w.machines = job
			c.arrange(t, job)
			code := w.start("worker", "--nats", "127.0.0.1:1", "--dir", t.TempDir(), "--name", "w", "-j", "1")
			w.err.await(t, "job j: all tasks are over")
			if c.late {
				job.changes <- JobChange{JobEntry: job.entry}
				require.Eventually(t, func() bool { return strings.Count(w.err.String(), "job j: all tasks are over") == 2 }, time.Minute, time.Millisecond)
			}
			w.signal <- syscall.SIGTERM
			assert.Equal(t, exitOK, <-code)
			assert.Equal(t, c.said, job.said())
			assert.Equal(t, JobOver, job.state)
			open, err := requeued(t.Context(), job.tasks)
			require.NoError(t, err)
			assert.False(t, open, "it was not run again")
			assert.Equal(t, 2, strings.Count(w.err.String(), "job j: t0: accepted"))
		})
	}
}

// The last task may end while troupe ctl decides.
func TestARequeueOpensAJobThatEndsMeanwhile(t *testing.T) {
	t.Parallel()
	job, w := newOneJob(t), newWorld()
	w.machines = job
	require.NoError(t, job.tasks.Offer(t.Context(), queue.Offer{Task: "t0"}))
	l, err := job.tasks.Lease(t.Context(), "t0", "w")
	require.NoError(t, err)
	job.opens = func() {
		assert.NoError(t, job.tasks.Finish(t.Context(), l, json.RawMessage(`{"id":"t0","status":"accepted"}`)))
		assert.NoError(t, job.Over(t.Context(), "j"))
	}
	assert.Equal(t, exitResult, w.run("ctl", "--nats", "127.0.0.1:1", "j", "requeue", "t0", "no-such-task"))
	assert.Equal(t, "over, open", job.said())
	open, err := requeued(t.Context(), job.tasks)
	require.NoError(t, err)
	assert.True(t, open)

	job.opens = nil
	assert.Equal(t, exitResult, w.run("ctl", "--nats", "127.0.0.1:1", "j", "requeue", "no-such-task"))
	assert.Equal(t, "over, open", job.said(), "nothing was requeued")
}

// A program that takes the results of a job does not say that it is over if a task was requeued meanwhile.
func TestARequeueWhileTheResultsAreTaken(t *testing.T) {
	t.Parallel()
	job := newOneJob(t)
	require.NoError(t, job.tasks.Offer(t.Context(), queue.Offer{Task: "t0"}))
	l, err := job.tasks.Lease(t.Context(), "t0", "w")
	require.NoError(t, err)
	require.NoError(t, job.tasks.Finish(t.Context(), l, json.RawMessage(`{"id":"t0","status":"accepted"}`)))
	s, again := (&app{console: &console{}}).settings(), func(ctx context.Context) (bool, error) { return requeued(ctx, job.tasks) }
	job.before = func() { job.requeue(t) }
	s.over(t.Context(), &console{}, job, "j", again)
	assert.Equal(t, "open, over, not over", job.said())

	l, err = job.tasks.Lease(t.Context(), "t0#1", "w")
	if err != nil { // no program has offered it yet
		require.NoError(t, job.tasks.Offer(t.Context(), queue.Offer{Task: "t0#1"}))
		l, err = job.tasks.Lease(t.Context(), "t0#1", "w")
	}
	require.NoError(t, err)
	require.NoError(t, job.tasks.Finish(t.Context(), l, json.RawMessage(`{"id":"t0","status":"accepted"}`)))
	s.over(t.Context(), &console{}, job, "j", again)
	assert.Equal(t, JobOver, job.state)
}
