package simtests_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/fleet/journal/journaltest"
	"github.com/agent-troupe/troupe/fleet/queue"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/simtests"
	"github.com/agent-troupe/troupe/supervisor"
)

// crew are programs that share a job. Each has a disk; they die, lose leases and lose the
// answers of the queue.
type crew struct {
	*simtests.World
	tasks []fleet.Task
	queue *queue.Memory

	mu      sync.Mutex
	working map[string]string          // the member that runs a task
	over    map[string]json.RawMessage // what each task came to
	moved   int                        // tasks that another member has begun anew
	void    int                        // results that came too late
	said    map[string]fleet.Status    // by task and text, what the verifier said last
	starts  map[string]int             // by ticket, as it was noted last
	orders  bool                       // a person gives orders: tasks begin anew
	budget  float64                    // of the job; 0: none
	costs   map[string]float64         // by ticket, as the queue knows it
	broke   time.Time                  // when the queue knew that the budget is spent
}

// member is one of the programs, from one host to the next.
type member struct {
	*crew
	name    string
	disk    *journaltest.Disk
	history *scripted.MemoryHistory
	host    int
	begun   bool // one of its hosts has started a task
	dead    bool // the host that runs has no disk and no network any more; the crew's mu guards it
	stopped bool // at the budget
	last    map[string]fleet.TaskResult
}

func newCrew(w *simtests.World) *crew {
	c := &crew{
		World: w, working: map[string]string{}, over: map[string]json.RawMessage{}, said: map[string]fleet.Status{}, starts: map[string]int{}, costs: map[string]float64{},
		queue: queue.NewMemory(queue.MemoryConfig{TTL: time.Minute, Clock: w.Runtime().Clock(), Executor: w.Runtime().Executor()}),
	}
	for i := range 1 + w.Rand().IntN(6) {
		t := fleet.Task{ID: fmt.Sprint("t", i), Prompt: "work"}
		if i > 0 && w.Rand().IntN(4) == 0 {
			t.After = []string{fmt.Sprint("t", w.Rand().IntN(i))}
			t.Prompt = "work {{len .Results}}"
		}
		switch w.Rand().IntN(6) {
		case 0:
			t.Turns = []string{"work on"}
		case 1:
			t.Timeout = fleet.Duration(30+w.Rand().IntN(100)) * fleet.Duration(time.Second)
		case 2:
			t.Verify = &fleet.Verify{Check: c.verify}
			if t.Verify.Rounds = w.Rand().IntN(2); t.Verify.Rounds > 0 {
				t.Verify.Prompt = "work again: {{.Output}}"
			}
		case 3:
			t.Clean = true
		}
		c.tasks = append(c.tasks, t)
	}
	return c
}

// verify draws what the verifier says. The answer says which program asks.
func (c *crew) verify(_ context.Context, of fleet.Candidate) (fleet.Verdict, error) {
	c.Sleep(time.Duration(c.Rand().IntN(10)) * time.Second)
	v := fleet.Verdict{OK: c.Rand().IntN(3) > 0, Output: "not good"}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.said[of.Task.ID+of.Text] = fleet.Rejected
	if v.OK {
		c.said[of.Task.ID+of.Text] = fleet.Accepted
	}
	return v, nil
}

var errNoNetwork = errors.New("there is no network")

// learns takes what the queue has just learned of the usage of a task; mu is held.
func (c *crew) learns(ticket string, usd float64) {
	c.costs[ticket] = max(c.costs[ticket], usd)
	all := 0.0
	for _, of := range c.costs { //troupe:maporder a sum of whole numbers
		all += of
	}
	if c.budget > 0 && all >= c.budget && c.broke.IsZero() {
		c.broke = time.Now()
		c.World.Note("the queue knows that the budget is spent")
	}
}

// link is the queue as one host sees it.
type link struct {
	*member
	host int
}

func (l link) broken() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead || l.host != l.member.host {
		return errNoNetwork
	}
	return nil
}

// call makes a call over the network, which delays requests and answers, and loses answers: the
// request is then made again. The first answer counts, as an implementation finds its own write.
func (l link) call(ctx context.Context, repeats bool, do func() error) error {
	delay := func() {
		if l.Rand().IntN(8) == 0 {
			_ = idle(ctx, l.World, 1+l.Rand().IntN(3))
		}
	}
	delay()
	if err := l.broken(); err != nil {
		return err
	}
	err := do()
	if repeats && l.Rand().IntN(10) == 0 {
		l.Sometimes("a call was made again, and had landed", true)
		delay()
		if again := do(); err == nil {
			assert.NoError(l, again, "a repetition")
		}
	}
	delay()
	return errors.Join(err, l.broken())
}

// Offer implements queue.Queue, as the other methods do.
func (l link) Offer(ctx context.Context, tasks ...queue.Offer) error {
	return l.call(ctx, true, func() error { return l.queue.Offer(ctx, tasks...) })
}

func (l link) Lease(ctx context.Context, task, worker string) (of queue.Lease, err error) {
	return of, l.call(ctx, false, func() error { of, err = l.queue.Lease(ctx, task, worker); return err })
}

func (l link) Extend(ctx context.Context, all ...queue.Lease) []error {
	var errs []error
	for _, of := range all {
		errs = append(errs, l.extend(ctx, of))
	}
	return errs
}

func (l link) extend(ctx context.Context, of queue.Lease) error {
	if err := l.broken(); err != nil {
		return err
	}
	switch l.Rand().IntN(8) {
	case 0:
		return errNoNetwork
	case 1: // the queue has forgotten the member, and waits for the end of the lease
		l.World.Note("%s loses the lease of %s", l.name, of.Task)
		return queue.ErrLeaseLost
	case 2: // it takes too long
		return l.Runtime().Executor().Await(ctx, nil)
	}
	return l.queue.Extend(ctx, of)[0]
}

func (l link) Finish(ctx context.Context, of queue.Lease, result json.RawMessage) error {
	if err := l.broken(); err != nil {
		return err
	}
	if l.Rand().IntN(20) == 0 { // the lease ends in this moment, and the task is free
		l.World.Note("%s loses the lease of %s with its result", l.name, of.Task)
		if err := l.queue.Release(ctx, of); err != nil {
			return err
		}
		var r fleet.TaskResult
		require.NoError(l, json.Unmarshal(result, &r))
		if l.Rand().IntN(2) == 0 && r.Status.Family() != "not_run" { // no program runs a task that all skip
			l.quicker(ctx, of.Task)
		}
	}
	err := l.queue.Finish(ctx, of, result)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.void++
		delete(l.working, of.Task) // the attempt is over
		return err
	}
	assert.Empty(l, l.over[of.Task], "%s has two results", of.Task)
	l.over[of.Task] = result
	var r fleet.TaskResult
	require.NoError(l, json.Unmarshal(result, &r))
	l.learns(of.Task, r.Usage.USD)
	if l.Rand().IntN(20) == 0 {
		return errNoNetwork // the answer is lost
	}
	return nil
}

// quicker has a program that is not of the crew give a result of the task. The others may
// hear of it before the queue has refused that of the member.
func (l link) quicker(ctx context.Context, task string) {
	of, err := l.queue.Lease(ctx, task, "quick")
	if err != nil { // others want it, too
		return
	}
	l.World.Note("another program finishes %s", task)
	var left fleet.TaskNote
	if len(of.Note) > 0 {
		require.NoError(l, json.Unmarshal(of.Note, &left))
	}
	result := json.RawMessage(fmt.Sprintf(`{"id":%q,"status":"failed","text":"quick","usage":{"usd":%g,"turns":0,"wall":"0s"},"worker":"quick","fence":%d}`, idOf(task), left.Usage.USD, of.Fence))
	l.mu.Lock()
	l.over[task] = result
	delete(l.working, task) // the attempt is over
	l.mu.Unlock()
	assert.NoError(l, l.queue.Finish(ctx, of, result))
	l.Sleep(time.Duration(l.Rand().IntN(3)) * time.Second)
}

func (l link) Release(ctx context.Context, of queue.Lease) error {
	l.mu.Lock()
	if l.working[of.Task] == l.name { // an attempt that the end of the job cuts short has no event
		delete(l.working, of.Task)
	}
	l.mu.Unlock()
	if err := l.broken(); err != nil {
		return err
	}
	return l.queue.Release(ctx, of)
}

func (l link) Note(ctx context.Context, of queue.Lease, note json.RawMessage) error {
	return l.call(ctx, false, func() error {
		err := l.queue.Note(ctx, of, note)
		if err != nil {
			return err
		}
		var left fleet.TaskNote
		require.NoError(l, json.Unmarshal(note, &left))
		l.mu.Lock()
		defer l.mu.Unlock()
		known := l.starts[of.Task]
		assert.True(l, of.Starts == known || left.Running && of.Starts == known+1, "%s notes %d starts of %s, after %d", l.name, of.Starts, of.Task, known)
		l.starts[of.Task] = of.Starts
		l.learns(of.Task, left.Usage.USD)
		return nil
	})
}

func (l link) Decide(ctx context.Context, d queue.Decision) error {
	return l.call(ctx, true, func() error { return l.queue.Decide(ctx, d) })
}

func (l link) Watch(ctx context.Context) iter.Seq2[queue.Change, error] { return l.queue.Watch(ctx) }

// saw checks that no two members ever run the same task.
func (m *member) saw(e fleet.Event) {
	m.Note("%s: %s %s/%d %s %s", m.name, e.Kind, e.Task, e.Attempt, e.Status, e.Detail)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch e.Kind {
	case fleet.EventStarted:
		other := m.working[e.Task]
		assert.True(m, other == "" || other == m.name || m.orders, "%s begins %s, which %s runs", m.name, e.Task, other)
		if !m.dead && !m.orders { // its start will find that nothing can be written
			assert.Empty(m, m.over[e.Task], "%s was started by %s after its result", e.Task, m.name)
		}
		// The call that leases it may have begun before.
		assert.True(m, m.dead || m.broke.IsZero() || time.Since(m.broke) < 15*time.Second, "budget: %s begins %s, and the queue knows since %s that nothing is left", m.name, e.Task, m.broke)
		m.working[e.Task], m.begun = m.name, true
		if e.Attempt == 1 {
			m.moved++
		}
	case fleet.EventEnded, fleet.EventFinished:
		if m.working[e.Task] == m.name {
			delete(m.working, e.Task)
		}
	}
}

// configure draws what an agent does.
func (m *member) configure(_ context.Context, _ *fleet.Task, o *sdk.Options) error {
	steps := scripted.Steps{scripted.Delay(time.Duration(1+m.Rand().IntN(100)) * time.Second)}
	switch m.Rand().IntN(6) {
	case 0:
		text := "overloaded"
		steps = append(steps, &scripted.Result{Subtype: "success", IsError: new(true), Text: &text, APIErrorStatus: 529})
	default:
		steps = append(steps, scripted.Text("done by "+m.name), &scripted.Result{Subtype: "success", Cost: 1})
	}
	o.Backend = scripted.New(scripted.WithScript(&scripted.Script{Transcript: true, Default: steps}), scripted.WithHistory(m.history))
	return nil
}

// person pauses and retunes the job of a host. One that is doomed may be ended, too.
func (m *member) person(ctx context.Context, h *fleet.Handle, doomed bool) {
	for range m.Rand().IntN(3) {
		if idle(ctx, m.World, 1+m.Rand().IntN(100)) != nil {
			return
		}
		switch what := m.Rand().IntN(3); {
		case what == 0:
			h.Pause()
			_ = idle(ctx, m.World, 1+m.Rand().IntN(100))
			h.Unpause()
		case what == 1 || !doomed:
			h.Retune(1 + m.Rand().IntN(3))
		default:
			m.Note("%s is ended", m.name)
			[]func(){h.Drain, h.Cancel, h.Kill}[m.Rand().IntN(3)]()
		}
	}
}

// run is a host of the member. Its disk and its network fail after so many operations;
// negative: never.
func (m *member) run(after int) error {
	ops := 0
	m.mu.Lock()
	m.host++
	m.dead = false
	m.mu.Unlock()
	m.disk.Fail = func(journaltest.Op) error {
		m.mu.Lock()
		defer m.mu.Unlock()
		if ops++; after < 0 || ops <= after {
			return nil
		}
		m.dead = true
		return errors.New("the host is dead")
	}
	_, missing := m.disk.Read("journal.jsonl")
	m.last = map[string]fleet.TaskResult{}
	job := fleet.Job{
		Tasks: m.crew.tasks, Out: m.name, FS: m.disk, Resume: missing == nil, Attempts: 100, MaxStarts: 1000, Concurrency: 1 + m.Rand().IntN(3),
		Backoff:   supervisor.Backoff{Initial: time.Second, Max: time.Minute},
		Options:   &sdk.Options{Runtime: m.Runtime()},
		Queue:     link{m, m.host},
		Worker:    fmt.Sprintf("%s-%d", m.name, m.host),
		Configure: m.configure, OnEvent: m.saw, Affinity: time.Duration(m.Rand().IntN(2)) * time.Minute,
	}
	if m.budget > 0 {
		job.Budget = &fleet.Budget{USD: m.budget}
	}
	handle, err := fleet.Start(m.Context(), job)
	if errors.Is(err, journal.ErrMissing) { // no host has lived until the first line was whole
		require.False(m, m.begun, "the journal is lost")
		job.Resume = false
		handle, err = fleet.Start(m.Context(), job)
	}
	if err != nil {
		return err
	}
	ctx, leave := context.WithCancel(m.Context())
	left := make(chan struct{})
	m.Go(func() {
		defer close(left)
		m.person(ctx, handle, after >= 0)
	})
	for r, failed := range handle.Results(m.Context()) {
		if failed != nil {
			err = failed
			break
		}
		before, twice := m.last[r.ID]
		assert.True(m, !twice || r.Requeued > before.Requeued, "%s came twice to a reader", r.ID)
		m.last[r.ID] = r
	}
	leave()
	require.NoError(m, m.Runtime().Executor().Await(m.Context(), left))
	m.mu.Lock()
	defer m.mu.Unlock()
	for task, name := range m.working { //troupe:maporder each by itself
		if name == m.name {
			delete(m.working, task) // nothing of the host is left
		}
	}
	return err
}

// live is the life of a member: its hosts die, and the last one comes to the end.
func (m *member) live() {
	for range m.Rand().IntN(3) {
		if err := m.run(m.Rand().IntN(40)); err == nil {
			return
		}
		m.disk = m.disk.Crash(m.disk.Ops(), func(int) int { return m.Rand().IntN(3) })
	}
	for {
		err := m.run(-1)
		var stopped *fleet.StoppedError
		if errors.As(err, &stopped) && stopped.Reason == fleet.StopQueue { // an answer that was lost
			assert.NotErrorIs(m, err, queue.ErrLeaseLost, "a lost lease is no failure of the queue")
			m.Sometimes("the queue failed in the middle of a job", true)
			continue
		}
		if m.stopped = stopped != nil && stopped.Reason == fleet.StopBudget; m.stopped {
			assert.Positive(m, m.budget)
			return
		}
		assert.NoError(m, err)
		return
	}
}

// task returns the task of a ticket.
func (c *crew) task(ticket string) *fleet.Task {
	i := slices.IndexFunc(c.tasks, func(t fleet.Task) bool { return t.ID == idOf(ticket) })
	return &c.tasks[i]
}

// idOf is the task of a ticket.
func idOf(ticket string) string {
	id, _, _ := strings.Cut(ticket, "#")
	return id
}

// all runs members at the same time, and waits for them.
func (c *crew) all(members []*member, live func(*member)) {
	var over []chan struct{}
	for _, m := range members {
		ended := make(chan struct{})
		over = append(over, ended)
		c.Go(func() {
			defer close(ended)
			live(m)
		})
	}
	for _, ended := range over { // not by a wait group: what waits for one runs when it likes
		require.NoError(c, c.Runtime().Executor().Await(c.Context(), ended))
	}
}

func (c *crew) members() (all []*member) {
	for i := range 2 + c.Rand().IntN(2) {
		all = append(all, &member{crew: c, name: fmt.Sprint("m", i), disk: &journaltest.Disk{}, history: &scripted.MemoryHistory{}})
	}
	return all
}

// TestExploreASharedJob: whichever programs die, lose their leases or the network, no two run
// a task at the same time, each task has one result, and all programs have the same ones. None begins a
// task once the queue knows that all of them have spent the budget of the job.
func TestExploreASharedJob(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: fewer(40), Cost: 6, Twice: 1}, func(w *simtests.World) {
		c := newCrew(w)
		c.budget = float64(2 * max(w.Rand().IntN(10)-6, 0))
		members := c.members()
		c.all(members, (*member).live)
		stopped := slices.ContainsFunc(members, func(m *member) bool { return m.stopped })
		w.Sometimes("the budget stopped a program", stopped)
		w.Sometimes("the budget was not spent", c.budget > 0 && !stopped)
		if !stopped {
			require.Len(w, c.over, len(c.tasks))
		}
		workers := map[string]bool{}
		for id, raw := range c.over { //troupe:maporder each by itself
			var r fleet.TaskResult
			require.NoError(w, json.Unmarshal(raw, &r))
			workers[r.Worker] = true
			if v := c.task(id).Verify; v != nil && (r.Status == fleet.Accepted || r.Status == fleet.Rejected) {
				assert.Equal(w, c.said[id+r.Text], r.Status, "%s, after what the verifier said", id)
			}
			for _, m := range members {
				got, seen := m.last[id]
				if m.stopped && !seen { // it has ended before the result came
					continue
				}
				if r.Status.Family() != "not_run" { // that, each says by itself
					assert.Equal(w, r.Fence, got.Fence, "%s of %s", id, m.name)
					assert.Equal(w, r.Worker, got.Worker, "%s of %s", id, m.name)
				}
				assert.Equal(w, r.Status, got.Status, "%s of %s", id, m.name)
				assert.Equal(w, r.Text, got.Text, "%s of %s", id, m.name)
			}
		}
		w.Sometimes("several programs have results", len(workers) > 1)
		w.Sometimes("a task was begun by several programs", c.moved > len(c.tasks))
		w.Sometimes("a result came too late", c.void > 0)
		w.Sometimes("another program was quicker with its result", workers["quick"])
	})
}
