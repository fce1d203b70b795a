package fleet

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// env is what all parts of a job have in common. None of it changes while the job runs.
type env struct {
	job     Job
	rt      *runtime.Runtime
	own     bool // rt is the job's
	exec    session.Executor
	clock   session.Clock
	root    string // Job.Out as an absolute path
	account string // its name
	worker  string // this program in the queue; "": the tasks are its own
	marker  string
	send    func(message) // to the actor

	ctx    context.Context // of attempts
	cancel context.CancelFunc
	hard   context.Context // ends with Kill
	kill   context.CancelFunc
	calls  context.Context // of the queue; ends with Kill, and a while after the end of ctx
	cut    context.CancelFunc
}

// post gives the job an input.
func (e *env) post(in input) { e.send(fed{in}) }

// tell gives the job a note.
func (e *env) tell(n note) { e.send(n) }

// say has an event told.
func (e *env) say(ev Event) {
	if e.job.OnEvent != nil {
		ev.At = e.clock.Now()
		e.post(said{ev})
	}
}

// stopError is the reason of a stop because of an error that no other reason is for.
const stopError = "error"

// fail stops the job with an error.
func (e *env) fail(err error) {
	reason := stopError
	switch {
	case errors.As(err, new(*journal.FailedError)):
		reason = StopJournal
	case errors.As(err, new(*queueError)):
		reason = StopQueue
	}
	stop := Stop{Reason: reason, Detail: err.Error()}
	e.tell(broken{err, stop})
	e.post(drained{stop})
	e.cancel()
}

// question asks the job something. The answer comes at once, also while a batch of effects is
// carried out, and after the end of the job.
func question[T any](e *env, ask func(*kernel.Promise[T]) note) (T, error) {
	to := kernel.NewPromise[T]()
	e.tell(ask(to))
	return to.Wait(context.Background(), e.exec)
}

// told calls Job.OnEvent. One task at a time calls it: the carrier.
func (e *env) told(ev Event) {
	if e.job.OnEvent == nil {
		return
	}
	if ev.At.IsZero() {
		ev.At = e.clock.Now()
	}
	_ = guard("Job.OnEvent", func() error { e.job.OnEvent(ev); return nil })
}

// limited is a context for calls of the queue after the end of the job.
func (e *env) limited(d time.Duration) (context.Context, context.CancelFunc) {
	return kernel.WithTimeout(e.hard, e.clock, &session.TimeoutError{What: "the queue", Limit: d, SetBy: "Job.QueueGrace"})
}

func joined(a, b error) error {
	if b == nil {
		return a
	}
	return errors.Join(a, b)
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
