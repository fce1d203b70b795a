package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/actors/ledger"
	"github.com/agent-troupe/troupe/actors/message"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/machine"
	"github.com/agent-troupe/troupe/session"
)

// Job is one callback to run.
type Job struct {
	// Name is the tool or event, for reports.
	Name string
	// Limit ends the callback; zero means none. SetBy names its option.
	Limit time.Duration
	SetBy string
	// Expired, if set, is the error of a callback that ran out of time.
	Expired func() error
	// Deadline, if set, takes the place of Limit once it is over, and after
	// Begin: it says how long the callback may take by now.
	Deadline func() Deadline
	// Begin, if set, runs before Run on the same task. Its error fails the
	// request.
	Begin func(ctx context.Context) error
	// Run calls the user. It returns the response of a success. An error
	// answers the request in its place, whatever stands beside it: gates deny,
	// the rest answers an error. Only a *[Reported] lets the response stand.
	Run func(ctx context.Context) (json.RawMessage, error)
	// Over, if set, is called when the request is answered or cancelled, though
	// Begin or Run may go on. It is quick, and may be called again.
	Over func()
	// Done, if set, is called once, after Run or in its place when the request
	// was cancelled before.
	Done func()
}

// Deadline is a limit that is not known beforehand, or moves.
type Deadline struct {
	Limit time.Duration // counted from Since; zero and less mean none
	Since time.Time
}

// Reported is an error that the response already tells: it is reported, and
// the response stands.
type Reported struct{ Err error }

func (r *Reported) Error() string { return r.Err.Error() }
func (r *Reported) Unwrap() error { return r.Err }

// Spoken is an error whose Reason the agent, and so the model, may see. The text
// of any other error goes to events alone.
type Spoken struct {
	Reason string
	Err    error
}

func (s *Spoken) Error() string { return s.Err.Error() }
func (s *Spoken) Unwrap() error { return s.Err }

// Refusal is an error that is answered with an error of this text and code.
type Refusal struct {
	Text string
	Code string // may be empty
	Err  error
}

func (r *Refusal) Error() string { return r.Err.Error() }
func (r *Refusal) Unwrap() error { return r.Err }

func (j *Job) done() {
	if j.Done != nil {
		j.Done()
	}
}

// Prepare turns a request into a job. An error fails the request at once.
type Prepare func(r *ledger.Request) (Job, error)

// Actor is the behaviour that all callback actors share.
type Actor struct {
	Kind    session.Kind
	Ledger  *ledger.Ledger
	Prepare Prepare
	// AsksPeople: some requests of the kind wait for a person, which the session's
	// state shows.
	AsksPeople bool
	// Refuses: a [Refusal] is answered as an error. Without it the request is denied,
	// as a gate must be: the agent may take an error for a yes.
	Refuses bool
	// Changed tells the session that a request was taken or answered.
	Changed func(*kernel.Worker)

	mu      sync.Mutex // tasks take themselves out
	running map[*ledger.Request]*run
	started uint64
	alarm   kernel.Timer // nil: none
	ringsAt time.Time    // when alarm does
}

type run struct {
	Job
	request *ledger.Request
	seq     uint64
	cancel  context.CancelCauseFunc
	due     time.Time // zero: it may take for ever
}

// errActorGone is the cause that a callback's context ends with when its actor
// stops.
var errActorGone = errors.New("the session no longer waits for this callback")

// Start implements [kernel.Behavior]. Requests that the last incarnation had
// not taken are waiting.
func (a *Actor) Start(c *kernel.Context[message.ToCallback]) error {
	a.running = make(map[*ledger.Request]*run)
	a.take(c)
	return nil
}

// Handle implements [kernel.Behavior].
func (a *Actor) Handle(c *kernel.Context[message.ToCallback], m message.ToCallback) error {
	switch m.(type) {
	case message.RequestsReady:
		a.take(c)
	case message.CallbacksDue:
		a.expire(c)
	default:
		return fmt.Errorf("%v: unexpected message %T", a.Kind, m)
	}
	return nil
}

// Stop implements [kernel.Behavior]: every callback's scope ends.
func (a *Actor) Stop(*kernel.Context[message.ToCallback]) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.alarm != nil {
		a.alarm.Stop()
	}
	for _, r := range a.running { //troupe:maporder ending a scope sends nothing
		r.cancel(errActorGone)
	}
}

func (a *Actor) take(c *kernel.Context[message.ToCallback]) {
	for _, r := range a.Ledger.Take(a.Kind) {
		a.start(c, r)
	}
}

func (a *Actor) start(c *kernel.Context[message.ToCallback], r *ledger.Request) {
	job, err := a.Prepare(r)
	if err != nil {
		a.fail(r, job.Name, err)
		a.changed(c.Worker())
		return
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	if job.Over != nil {
		end := cancel
		cancel = func(cause error) { end(cause); job.Over() }
	}
	if !a.Ledger.Scope(r, cancel) {
		cancel(context.Canceled)
		job.done()
		return
	}
	a.Ledger.Describe(r, job.Name, job.Limit)
	running := &run{Job: job, request: r, cancel: cancel}
	if job.Limit > 0 {
		running.due = c.Now().Add(job.Limit)
	}
	a.enter(c, running)
	self, system := c.Self(), c.System()
	c.Go(func() (then func(*kernel.Worker)) {
		var response json.RawMessage
		err := errNoReturn
		defer func() {
			write := a.Ledger.WriteThrough(func() {
				a.settle(r, job.Name, response, err)
				cancel(context.Canceled)
				a.leave(r)
			})
			then = a.over(system, write)
			if then != nil && errors.Is(err, errNoReturn) { // its goroutine ends here
				then(nil)
			}
		}()
		response, err = call(ctx, job, func() {
			if a.moved(running, system.Clock()) {
				self.Tell(nil, message.CallbacksDue{})
			}
		})
		return nil // it is set above
	})
}

// over is what comes after a callback: its answer is written, which blocks while
// the agent does not read, and the session hears, which does not wait for that.
func (a *Actor) over(system *kernel.System, write func()) (then func(*kernel.Worker)) {
	if !a.watched() {
		write()
		return nil
	}
	return func(w *kernel.Worker) {
		a.Changed(w)
		system.Go(w, func() func(*kernel.Worker) { write(); return nil })
	}
}

// settle answers a request whose callback has ended.
func (a *Actor) settle(r *ledger.Request, name string, response json.RawMessage, err error) {
	var told *Reported
	switch {
	case err == nil:
		a.Ledger.Answer(r, response, "")
	case !errors.As(err, &told):
		a.fail(r, name, err)
	case a.Ledger.Answer(r, response, ""):
		a.report(r, name, told.Err)
	}
}

var errNoReturn = errors.New("the callback ended its goroutine instead of returning (runtime.Goexit does that, and so does FailNow of a test)")

// call runs the callback and turns a panic into an error. begun says that the
// deadline may have moved.
func call(ctx context.Context, job Job, begun func()) (response json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &session.PanicError{Value: p, Message: job.Name, Stack: debug.Stack()}
		}
	}()
	defer job.done()
	if job.Begin != nil {
		if err := job.Begin(ctx); err != nil {
			return nil, err
		}
		begun()
	}
	return job.Run(ctx)
}

// fail answers a request in its callback's place. The error's text goes to
// the events, not to the model.
func (a *Actor) fail(r *ledger.Request, name string, err error) {
	reason := "the callback failed"
	var spoken *Spoken
	if errors.As(err, &spoken) {
		reason = spoken.Reason
	}
	var refusal *Refusal
	var answered bool
	if a.Refuses && errors.As(err, &refusal) {
		answered = a.Ledger.Refuse(r, refusal.Text, refusal.Code)
	} else {
		answered = a.Ledger.Fail(r, reason, err)
	}
	if answered {
		a.report(r, name, err)
	}
}

func (a *Actor) report(r *ledger.Request, name string, err error) {
	a.Ledger.Emit(session.CallbackFailed{Kind: a.Kind.String(), Name: machine.Short(name), RequestID: machine.Short(r.ID), Err: err})
}

// enter notes a callback that is about to run.
func (a *Actor) enter(c *kernel.Context[message.ToCallback], r *run) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.started++
	r.seq = a.started
	a.running[r.request] = r
	a.arm(c, r.due)
}

// leave forgets a callback whose task has ended. The alarm stays: the next
// callback will want it, and finding nothing to do costs less than to wind it up
// for each.
func (a *Actor) leave(request *ledger.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.running, request)
}

// watched reports whether the session has to be told of each answer.
func (a *Actor) watched() bool { return a.AsksPeople || a.Ledger.Watches() }

// changed tells the session, which shows that a person is asked.
func (a *Actor) changed(w *kernel.Worker) {
	if a.watched() {
		a.Changed(w)
	}
}
