package callback

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// Box is what outlives a callback actor: the callbacks that run. The actor owns it,
// and its parent while there is no actor.
type Box struct{ running map[uint64]*run }

// Lost forgets the callbacks that a dead actor had taken, and returns their requests
// by their numbers. Their contexts have ended.
func (b *Box) Lost() []uint64 {
	seqs := slices.Sorted(maps.Keys(b.running))
	b.running = nil
	return seqs
}

// Actor is the behaviour that all callback actors share.
type Actor struct {
	Kind    session.Kind
	Box     *Box
	Router  *kernel.Address[machine.Input]
	Prepare Prepare
	Emit    func(session.Event)
	// Trace follows the session, with all functions set. Nil: tracing is off.
	Trace *session.Trace
	// Refuses: a [RefusalError] is answered as an error. Without it the request is denied,
	// as a gate must be: the agent may take an error for a yes.
	Refuses bool

	alarm   kernel.Timer // nil: none
	ringsAt time.Time    // when alarm does
}

// run is a callback that runs. Its task and the actor read it; answer is the task's.
type run struct {
	Job
	Request
	actor   *Actor
	ctx     context.Context
	cancel  context.CancelCauseFunc
	answer  machine.Input // what the task sends the router
	due     time.Time     // of the actor; zero: no limit
	rings   time.Time     // when the alarm rang as the task was made
	clock   kernel.Clock
	self    *kernel.Address[machine.ToCallback]
	expired bool                       // of the actor: it is answered for
	trace   func(session.TracedAnswer) // nil: tracing is off
	shown   atomic.Bool                // trace was called
}

// Look describes the callbacks that run.
type Look struct {
	Reply *kernel.Promise[map[uint64]Running]
}

// Running is a callback that runs.
type Running struct {
	Name  string        // tool or event
	Limit time.Duration // zero: none
	SetBy string        // the option that sets Limit
}

// ToCallback implements [machine.ToCallback].
func (Look) ToCallback() {}

// due is the time to see whether a callback has taken too long. From: the clock.
type due struct{}

// began says that the deadline of a callback may be another one than was thought.
// From: its task.
type began struct{ seq uint64 }

func (due) ToCallback()   {}
func (began) ToCallback() {}

// errActorGone is the cause that a callback's context ends with when its actor
// stops.
var errActorGone = errors.New("the session no longer waits for this callback")

// Drop implements [Owner].
func (a *Actor) Drop(seq uint64) { a.Router.Tell(nil, machine.Answered{Seq: seq, Drop: true}) }

// Start implements [kernel.Behavior].
func (a *Actor) Start(*kernel.Context[machine.ToCallback]) error { return nil }

// Handle implements [kernel.Behavior].
func (a *Actor) Handle(c *kernel.Context[machine.ToCallback], m machine.ToCallback) error {
	switch m := m.(type) {
	case machine.Run:
		a.start(c, &run{actor: a, Request: Request{Seq: m.Seq, Kind: m.Kind, Frame: m.Frame, Opened: m.Opened, Owner: a}})
	case machine.Cancel:
		a.end(m)
	case due:
		a.expire(c)
	case began:
		if r := a.Box.running[m.seq]; r != nil && !r.expired {
			a.look(r, c.Now())
			a.arm(c, r.due)
		}
	case Look:
		m.Reply.Resolve(a.describe())
	default:
		return fmt.Errorf("%v: unexpected message %T", a.Kind, m)
	}
	return nil
}

// Stop implements [kernel.Behavior]: every callback's scope ends.
func (a *Actor) Stop(*kernel.Context[machine.ToCallback]) {
	for _, seq := range slices.Sorted(maps.Keys(a.Box.running)) {
		a.Box.running[seq].end(errActorGone)
	}
}

func (a *Actor) describe() map[uint64]Running {
	all := make(map[uint64]Running, len(a.Box.running))
	for seq, r := range a.Box.running { //troupe:maporder into another map
		limit, by := r.Limit, r.SetBy
		if r.Deadline != nil {
			d := r.Deadline()
			limit, by = max(d.Limit, 0), d.SetBy
		}
		all[seq] = Running{Name: r.Name, Limit: limit, SetBy: by}
	}
	return all
}

func (a *Actor) start(c *kernel.Context[machine.ToCallback], r *run) {
	var err error
	r.clock = c.System().Clock()
	if r.Job, err = a.Prepare(&r.Request); err != nil {
		a.begin(context.Background(), r)
		r.traced(nil, err)
		a.Router.Tell(c.Worker(), a.failure(&r.Request, r.Name, err))
		return
	}
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	r.ctx = a.begin(r.ctx, r)
	if a.Box.running == nil {
		a.Box.running = make(map[uint64]*run)
	}
	a.Box.running[r.Seq] = r
	if r.Limit > 0 {
		r.due = c.Now().Add(r.Limit)
		a.arm(c, r.due)
	}
	r.rings, r.self = a.ringsAt, c.Self()
	c.Go(r.perform)
}

// end ends the callback's scope.
func (r *run) end(why error) {
	r.traced(nil, why)
	r.cancel(why)
	if r.Over != nil {
		r.Over()
	}
}

// perform is the task.
func (r *run) perform() (then func(*kernel.Worker)) {
	if r.ctx.Err() != nil { // it is over before it has begun
		r.done()
		return nil
	}
	var response json.RawMessage
	err := errNoReturn
	defer func() {
		then = r.over(r.actor.answer(&r.Request, r.Name, response, err))
		if then != nil && errors.Is(err, errNoReturn) { // its goroutine ends here
			then(nil)
		}
	}()
	response, err = r.call()
	return nil // it is set above
}

// over is what comes after a callback: the router gets its answer. One whose request is
// over is late, and there may be no router any more. That it fails then is as a rule the
// end of its context; a panic never is.
func (r *run) over(answer machine.Answered) (then func(*kernel.Worker)) {
	if r.ctx.Err() == nil {
		r.traced(answer.Response, answer.Failure)
		r.answer = answer
		return r.report
	}
	panicked, ok := errors.AsType[*session.PanicError](answer.Failure)
	switch {
	case ok:
		r.actor.Emit(&session.CallbackFailed{Kind: answer.Kind.String(), Name: machine.Short(answer.Name), RequestID: machine.Short(answer.ID), Err: panicked})
	case answer.Deny == "":
		r.actor.Emit(&session.LateAnswer{Kind: answer.Kind.String(), RequestID: machine.Short(answer.ID)})
	}
	return nil
}

func (r *run) report(w *kernel.Worker) { r.actor.Router.Tell(w, r.answer) }

// end forgets a callback whose request is over, and ends its scope. The alarm stays:
// the next callback will want it, and finding nothing to do costs less than to wind
// it up for each.
func (a *Actor) end(m machine.Cancel) {
	r := a.Box.running[m.Seq]
	if r == nil {
		return
	}
	why := m.Why
	if why == nil {
		why = context.Canceled
	}
	r.end(why)
	if delete(a.Box.running, m.Seq); len(a.Box.running) == 0 {
		a.Box.running = nil // a map never gives memory back
	}
}

// answer is what a callback that has ended says.
func (a *Actor) answer(r *Request, name string, response json.RawMessage, err error) machine.Answered {
	var told *ReportedError
	switch {
	case err == nil:
		return a.named(r, name, machine.Answered{Response: response})
	case errors.As(err, &told):
		return a.named(r, name, machine.Answered{Response: response, Failure: told.Err})
	}
	return a.failure(r, name, err)
}

var errNoReturn = errors.New("the callback ended its goroutine instead of returning (runtime.Goexit does that, and so does FailNow of a test)")

func (r *run) done() {
	if r.Done != nil {
		r.Done()
	}
}

// call runs the callback and turns a panic into an error.
func (r *run) call() (response json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &session.PanicError{Value: p, Message: r.Name, Stack: debug.Stack()}
		}
	}()
	defer r.done()
	if r.Begin != nil {
		if err := r.Begin(r.ctx); err != nil {
			return nil, err
		}
		if r.sooner() {
			r.self.Tell(nil, began{r.Seq})
		}
	}
	return r.Run(r.ctx)
}

// failure answers a request in its callback's place. The error's text goes to
// the events, not to the model.
func (a *Actor) failure(r *Request, name string, err error) machine.Answered {
	var refusal *RefusalError
	if a.Refuses && errors.As(err, &refusal) {
		return a.named(r, name, machine.Answered{ErrText: refusal.Text, Code: refusal.Code, Failure: err})
	}
	reason := "the callback failed"
	var spoken *PublicError
	if errors.As(err, &spoken) {
		reason = spoken.Reason
	}
	return a.named(r, name, machine.Answered{Deny: reason, Cause: err, Failure: err})
}

func (a *Actor) named(r *Request, name string, answer machine.Answered) machine.Answered {
	answer.Seq, answer.ID, answer.Kind, answer.Name = r.Seq, r.ID(), r.Kind, name
	return answer
}
