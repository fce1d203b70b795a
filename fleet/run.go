package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/fleet/queue"
	"github.com/agent-troupe/troupe/fleet/sharedmcp"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// run is a job that runs. The loop owns plan; what others need is under mu.
type run struct {
	job   Job
	rt    *runtime.Runtime
	own   bool // rt is the job's
	exec  session.Executor
	clock session.Clock
	root  string // Job.Out as an absolute path
	// unsampled is the number of tasks that Job.Sample leaves for later.
	unsampled int
	fs        journal.FS
	log       journal.Journal // nil without Out
	keeper    *journal.Keeper // nil without Out
	store     queue.Store     // the files in Out; nil without Out
	queue     queue.Queue
	account   string // its name
	worker    string // this program in queue
	marker    string
	source    func() (Task, error, bool) // of Stream
	cease     func()                     // ends source
	plan      *plan
	alarm     session.Timer // of the plan; the loop's
	// projection is the state of results.jsonl; the loop's.
	projection projection
	// leaving are the workspaces of tasks that are over and are cleared up; the loop's.
	leaving []*kernel.Promise[struct{}]
	ctx     context.Context // of attempts
	cancel  context.CancelFunc
	hard    context.Context // ends with Kill
	kill    context.CancelFunc
	over    chan struct{}

	box box

	mu      sync.Mutex
	tasks   map[string]*entry
	order   []*entry
	running []*entry // in the order of their start
	setups  setups
	repos   repositories
	remarks map[string]bool // that were told
	after   aftermath
	shared  *sharedmcp.Servers
	found   history // of earlier processes
	usage   Usage
	fanout  int // subagents of all attempts, see Subagents.MaxJob
	gauge   gauge
	limit   int                     // of the pace, or Concurrency
	changes []runtime.AccountChange // of the pace
	parked  time.Time               // until then nothing starts; zero: the job is not parked
	outage  string                  // what has failed that all need; "": nothing
	paused  bool
	stop    *Stop
	cause   error
	failed  *Stop // with cause
	begun   time.Time
	results []TaskResult
	read    int           // of results
	news    chan struct{} // closed by the next result; nil: nobody waits
	final   bool          // no more results
	err     error         // after the results
}

// entry is what the job knows of a task.
type entry struct {
	task     *Task
	index    int
	hash     string
	attempts []Attempt
	result   *TaskResult
	number   int       // of the attempt that runs
	since    time.Time // when it began
	doing    string
	last     *attempt // that ended, until its result is made
	space    space
	partial  partial // of a session that goes on
	usage    Usage
	due      time.Time     // not before; zero: at once
	former   *TaskResult   // that is void
	requeued int           // results that are void
	asks     []*asked      // calls that wait for a person, or did
	tenure   *tenure       // the lease; nil: this program has none
	late     *queue.Lease  // that the queue extended after this program had lost it; to be given back
	foreign  *TaskResult   // of another program
	missed   *queue.Change // the same, while the queue is given the own result
	unkept   *TaskResult   // while the queue is asked, and until it is in the journal
	claimed  *answer       // the result that the queue has, until it is in the journal
	orphan   bool          // an earlier host died while an attempt was under way
}

// partial is what turns have said whose attempt did not come to its end.
type partial struct {
	Text       string
	Structured []byte
	ToolCalls  int
	Usage      Usage
}

func start(ctx context.Context, job Job, source iter.Seq2[Task, error]) (*Handle, error) {
	job.withDefaults()
	if err := cmp.Or(job.check(), job.ready()); err != nil {
		return nil, err
	}
	if source != nil && job.Queue != nil {
		return nil, &session.ConfigError{Option: "Queue", Problem: "cannot be used with Stream: each program must know all tasks", Fix: "use Run"}
	}
	if source != nil && job.Sample != 0 {
		return nil, &session.ConfigError{Option: "Sample", Problem: "has no use with Stream, whose tasks are not known", Fix: "use Run, or stream only the samples"}
	}
	r := &run{job: job, over: make(chan struct{}), tasks: map[string]*entry{}}
	entries, err := r.entries(job.Tasks, 0)
	if err != nil {
		return nil, err
	}
	if r.rt, _ = job.Options.Runtime.(*runtime.Runtime); r.rt == nil {
		if r.rt, err = runtime.New(runtime.Config{StateDir: job.StateDir()}); err != nil {
			return nil, err
		}
		r.own = true
	}
	r.exec, r.clock, r.marker = r.rt.Executor(), r.rt.Clock(), r.rt.NewMarker()
	if r.shared = job.SharedMCP; r.shared == nil {
		r.shared = sharedmcp.New(r.rt, sharedmcp.Options{Dir: job.SharedMCPDir, Marker: r.marker})
	}
	r.begun = r.clock.Now()
	if err := r.open(ctx, entries); err != nil {
		return nil, errors.Join(err, r.shutdown())
	}
	r.worker = cmp.Or(job.Worker, fmt.Sprintf("%s:%d:%s", hostName(), os.Getpid(), kernel.NewID(r.rt.Rand())))
	r.openQueue()
	r.account = cmp.Or(job.Account, accountOf(job.Options))
	account := r.rt.Account(r.account)
	if until := r.found.parked.Until; until.After(r.begun) && until.After(account.Stat().Parked) {
		account.Park(until, r.found.parked.Why)
	}
	r.plan = newPlan(rules{
		concurrency: job.Concurrency, attempts: job.Attempts, starts: job.MaxStarts, equal: job.EqualFailures,
		backoff: job.Backoff, rand: r.rt.Rand(), failOn: job.FailOn, budget: job.Budget, pace: job.Pace, park: max(job.MaxPark, 0), patience: job.patience(),
		shared: job.Queue != nil, account: account, began: r.begun, wake: func() { r.post(woken{}) },
	})
	if until := r.found.parked.Until; until.After(r.begun) {
		r.plan.parked, r.parked = until, until // it is in the journal already
	}
	r.ctx, r.cancel = context.WithCancel(ctx)
	r.hard, r.kill = context.WithCancel(context.WithoutCancel(ctx))
	if source != nil {
		r.source, r.cease = iter.Pull2(source)
	}
	r.limit = r.plan.limit()
	if job.Pace != nil {
		r.watch()
	}
	entries = r.sample(entries)
	if err := r.begin(ctx, entries); err != nil {
		return nil, errors.Join(err, r.shutdown())
	}
	return &Handle{r: r}, nil
}

// fail stops the job with an error of its own.
func (r *run) fail(err error) {
	reason := "error"
	switch {
	case errors.As(err, new(*journal.FailedError)):
		reason = StopJournal
	case errors.As(err, new(*queueError)):
		reason = StopQueue
	}
	stop := Stop{Reason: reason, Detail: err.Error()}
	r.mu.Lock()
	if r.cause == nil {
		r.cause, r.failed = err, &stop
	}
	r.mu.Unlock()
	r.post(drained{stop})
	r.cancel()
}

// keep keeps what an attempt has left before the plan decides about it.
func (r *run) keep(in input) {
	if _, ok := in.(settledOnAccept); ok {
		r.outdated()
	}
	end, ok := in.(ended)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.tasks[end.id]
	for i, o := range r.running {
		if o == e {
			r.running = append(r.running[:i:i], r.running[i+1:]...)
			break
		}
	}
	if end.refused { // nothing was done
		return
	}
	a := e.last
	done := Attempt{
		Number: a.number, Status: end.status, Mode: a.mode, Session: a.Session,
		Started: a.started, Ended: r.clock.Now(), Usage: end.usage, Class: classOf(a.err),
	}
	if a.err != nil {
		done.Error = a.err.Error()
	}
	if a.decided == "" {
		e.attempts = append(e.attempts, done)
	}
	e.space, e.partial = a.space, partial{}
	if end.turns > 0 && end.session != "" {
		e.partial = partial{Text: a.Text, Structured: a.Structured, ToolCalls: a.ToolCalls}
	}
	e.usage.add(end.usage)
	r.usage.add(end.usage)
}

// carryOut does what the plan wants, and reports whether the job has come to its end.
func (r *run) carryOut(ctx context.Context, now time.Time, effects []effect, s seen) (halted bool) {
	first := voided(effects)
	halted, err := r.carry(ctx, now, effects[:first], nil)
	if first < len(effects) {
		halted, _ = r.carry(ctx, now, effects[first:], err)
	}
	r.mu.Lock()
	r.limit, r.parked, r.outage = s.limit, s.parked, s.outage
	if news := r.stop == nil && s.stopped != nil; news {
		r.stop = s.stopped
		defer r.tell(Event{Kind: EventStopped, Detail: strings.TrimSuffix(r.stop.Reason+": "+r.stop.Detail, ": ")})
	}
	r.mu.Unlock()
	if !halted {
		r.update(now)
	}
	return halted
}

// voided is how many effects have to be carried out before the others: a task that is
// requeued may be skipped at once, and its new result must not be taken for the void one.
func voided(effects []effect) (n int) {
	for i, e := range effects {
		void, ok := e.(requeued)
		if ok && slices.ContainsFunc(effects[i:], func(e effect) bool { f, ok := e.(finish); return ok && f.id == void.id }) {
			n = i + 1
		}
	}
	if n == 0 {
		return len(effects)
	}
	return n
}

// carry writes the records of effects, and does what follows from them. failed is the error
// of the effects before them.
func (r *run) carry(ctx context.Context, now time.Time, effects []effect, failed error) (halted bool, err error) {
	var records []journal.Record
	for _, e := range effects {
		switch e := e.(type) {
		case again:
			records = append(records, r.attemptRecord(e))
			r.rests(e)
		case finish:
			rec, err := r.finishing(now, e)
			records, failed = append(records, rec), cmp.Or(failed, err)
		case parking:
			records = append(records, r.record(kindParked, "", 0, parkedRecord{e.until, e.why}))
		case canceling:
			records = append(records, r.record(kindCanceled, e.id, 0, struct{}{}))
		case requeued:
			records = append(records, r.record(kindRequeued, e.id, 0, struct{}{}))
		}
	}
	err = failed
	if err == nil {
		err = r.append(context.WithoutCancel(ctx), records...)
	}
	if err != nil {
		r.fail(err)
		r.mu.Lock()
		for _, e := range effects { // what is not durable has not happened
			if f, ok := e.(finish); ok {
				r.tasks[f.id].result, r.tasks[f.id].unkept = nil, nil
			}
		}
		r.mu.Unlock()
	}
	for _, e := range effects {
		switch e := e.(type) {
		case launch:
			r.launch(e)
		case again:
			if t := r.tasks[e.id]; !e.due.IsZero() && len(t.attempts) > 0 {
				r.tell(Event{Kind: EventEnded, Task: e.id, Attempt: t.last.number, Status: t.attempts[len(t.attempts)-1].Status, Detail: t.attempts[len(t.attempts)-1].Error})
			}
		case finish:
			r.finished(r.tasks[e.id])
			r.outdated()
		case claim:
			r.exec.Go(func() { r.post(r.claim(now, e)) })
		case clearUp:
			r.clearUp(r.tasks[e.id], e.slot)
		case canceling, requeued, answered, pausing, troubled, recovered:
			r.steer(e, err)
		case losing:
			r.giveUp(e.id)
		case setAlarm:
			if r.alarm != nil {
				r.alarm.Stop()
			}
			r.alarm = r.clock.AfterFunc(e.at.Sub(now), func() { r.post(woken{}) })
		case paced:
			r.paced(e.AccountChange)
			r.tell(Event{Kind: EventPaced, Detail: e.String()})
		case parking:
			r.tell(Event{Kind: EventParked, Detail: e.until.Format(time.RFC3339) + ": " + e.why})
		case unparked:
			r.tell(Event{Kind: EventUnparked})
		case warnBudget:
			r.tell(Event{Kind: EventWarning, Detail: "four fifths of the job's budget of " + e.limit + " are spent"})
		case halt:
			halted = true
		}
	}
	return halted, err
}

// finish writes the files, lets go of everything, and ends the results.
func (r *run) finish(ctx context.Context) {
	if r.source != nil {
		r.cease()
	}
	r.cancel()
	if r.alarm != nil { // it may be due in a day
		r.alarm.Stop()
	}
	for _, l := range r.leaving {
		_, _ = l.Wait(ctx, r.exec) // Kill ends it
	}
	r.closeAftermath(ctx)
	r.mu.Lock()
	if r.stop == nil { // it failed with the last result
		r.stop = r.failed
	}
	r.mu.Unlock()
	r.sampled()
	errs := []error{r.release(r.hard)}
	if r.root != "" {
		errs = append(errs, r.project(), r.summarize())
	}
	r.kill()
	errs = append(errs, r.shutdown())
	r.mu.Lock()
	left := r.unsampled
	for _, e := range r.order {
		if e.result == nil {
			left++
		}
	}
	if r.stop != nil && (left > 0 || r.cause != nil) {
		errs = append(errs, &StoppedError{Stop: *r.stop, Left: left, Err: errors.Join(r.cause, context.Cause(ctx))})
	}
	r.final, r.err = true, errors.Join(errs...)
	r.rouse()
	r.mu.Unlock()
}

// shutdown ends what the job has of its own.
func (r *run) shutdown() error {
	var err error
	if r.job.SharedMCP == nil {
		err = r.shared.Close(context.Background())
	}
	if r.own {
		err = errors.Join(err, r.rt.Shutdown(context.Background()))
	}
	if r.log != nil {
		err = errors.Join(err, r.log.Close())
	}
	return err
}

func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}

func absolute(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	return filepath.Abs(path)
}
