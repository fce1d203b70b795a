package fleet

import (
	"fmt"
	"time"

	"github.com/agent-troupe/troupe/fleet/queue"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
)

// message is what the actor of a job takes: a note, or one of the four below.
type message any

// input is what decides: it waits while a batch of effects is carried out.
type input interface {
	step(m *machine, out []effect) []effect
}

// note changes or asks what the job knows, and waits for nothing. Its effects are those that
// the actor carries out itself.
type note interface {
	note(m *machine, now time.Time, out []effect) []effect
}

type (
	// fed is an input.
	fed struct{ in input }
	// carried: what the last batch wanted is done, or the carrier has panicked. From: the carrier.
	carried struct {
		halted bool
		err    error
	}
	// closed: all files are written. From: the carrier.
	closed struct{ err error }
	// nextResult asks for the next result that no reader has had. From: a reader.
	nextResult struct{ reply *kernel.Promise[delivery] }
)

// Inputs.
type (
	// added: tasks to run. past is what an earlier process knew of them.
	added struct {
		specs []spec
		past  map[string]*node
		last  bool // no more will come
	}
	// pulled: as many tasks as were asked for have come, or there are no more.
	pulled struct{}
	// ended: an attempt is over.
	ended struct {
		id string
		outcome
	}
	// drained: start nothing more.
	drained struct{ stop Stop }
	// retuned: run that many at a time.
	retuned struct{ concurrency int }
	// paused: start nothing, or continue.
	paused struct{ on bool }
	// steered: a decision about a task.
	steered struct {
		id    string
		what  steer
		reply *kernel.Promise[struct{}] // nil if no caller waits
		// ordered: the queue has the decision; number is that of the ticket a requeue makes.
		ordered bool
		number  int
	}
	// decided: a person has decided about a call. failed: that could not be written.
	decided struct {
		task    string
		verdict decidedRecord
		failed  bool
	}
	// woken: the alarm went off.
	woken struct{}
	// pressed: an attempt has seen the API in trouble.
	pressed struct {
		id    string
		saw   trouble
		after time.Duration // that the API asked for
	}
	// worked: a turn of an attempt has a result of the model, which was asked at that time.
	worked struct {
		id    string
		asked time.Time
	}
	// reached: an attempt has shown that something works which all attempts need, by a start or
	// a request that began at the time from.
	reached struct {
		id   string
		of   resource
		from time.Time
	}
	// leased: the queue has given the task to this program.
	leased struct {
		id     string
		number int
		lease  queue.Lease
		sent   time.Time
		reply  *kernel.Promise[struct{}] // settled when its deadline is set
	}
	// claimed: the queue has taken the result of a task, or not.
	claimed struct {
		id   string
		lost bool
		err  error // of the queue
	}
	// freed: no program has the task any more.
	freed struct{ ticket string }
	// taken: a program has the task.
	taken struct{ ticket, worker string }
	// foreign: another program has finished the task.
	foreign struct {
		ticket string
		result *TaskResult
	}
	// cleared: a clearUp has ended.
	cleared struct{ slot int }
	// settledOnAccept: Job.OnAccept has ended for the result of a task.
	settledOnAccept struct {
		id       string
		requeued int
		said     OnAccept
		detail   string
	}
	// ranAgain: a command after an older result has ended.
	ranAgain struct{}
	// starving: the machine has too little time for what runs, or has enough again.
	starving struct{ on bool }
	// said: an event without a change.
	said struct{ Event }
	// remarked: a warning about many tasks.
	remarked struct{ text string }
)

// outcome is how an attempt went, in the terms of a machine.
type outcome struct {
	status    Status
	why       string        // equal texts are equal failures
	retry     bool          // the same may succeed
	poisoned  bool          // not in this conversation
	free      bool          // it does not count against the attempts
	asks      bool          // it was interrupted because a call waits for a person
	refused   bool          // another program has the task: nothing was started
	lost      bool          // another program has the task: the attempt was killed
	fault     resource      // what has failed, if it is shared: then the task has not failed
	unstarted bool          // the agent was never ready
	gated     bool          // a breaker did not let it start
	stops     string        // reason for the whole job; "" if it continues
	after     time.Duration // the least wait before a retry
	usage     Usage
	session   string  // to resume; "": none
	turns     int     // that are done
	space     string  // workspace
	left      *report // or nil
}

// remains is what an attempt leaves for those who use its workspace later.
type remains struct {
	task      *Task
	opts      *sdk.Options // nil: those of the task, as they were before Configure
	workspace Workspace
	space     space
	number    int
	fence     uint64
	dir       string // "": there is no workspace to clear up
}

// effect is what a machine wants done.
type effect interface{ isEffect() }

// Effects that the carrier carries out, in their order, once what they say is durable.
type (
	// launch starts an attempt.
	launch struct {
		id      string
		number  int // from 1
		mode    Mode
		session string
		space   string
		turns   int    // of the session that are done
		why     string // the attempt before ended
		slot    int
		used    Usage   // by earlier attempts, of the task's budget
		usd     float64 // the remaining budget; 0: no limit
		with    *equipment
	}
	// again: the attempt failed, and the next one follows.
	again struct {
		id     string
		due    time.Time // zero: not in this process
		counts bool      // against the attempts
		number int
		told   bool // by an event
		record *attemptRecord
	}
	// finish: the task is over.
	finish struct {
		id     string
		status Status
		why    string // if it never ran
		number int    // of its last attempt
		result *TaskResult
		starts int  // of the task, in this directory
		base   int  // those before it was requeued last
		folded bool // its long texts are in files
	}
	// claim gives the queue the result of a task.
	claim struct {
		id     string
		number int
		ticket string
		hash   string
		offer  bool
		lease  *queue.Lease // nil if it has to be asked for
		result *TaskResult
	}
	// clearUp runs the teardown of a task that is over. The slot is free again with cleared.
	clearUp struct {
		id       string
		slot     int
		accepted bool
		requeued int      // the number of its result
		left     *remains // nil without work to clear up
	}
	// runAgain runs the command after acceptance for a result that was there already.
	runAgain struct {
		id string
		of repetition
	}
	// canceling: an attempt is under way, and its task is to be canceled.
	canceling struct{ id string }
	// admitting: the program has to do with a task of which its journal knows nothing.
	admitting struct{ id, hash string }
	// requeued: the task begins anew. Its result is void, and the attempt that is under way
	// ends.
	requeued struct {
		id     string
		runs   bool
		number int // of its ticket, if the queue has the decision
	}
	// answered: the decision is taken.
	answered struct {
		to  *kernel.Promise[struct{}] // nil if no caller waits
		err error
	}
	// pausing: the job pauses or resumes.
	pausing struct{ on bool }
	// troubled: nothing starts but one attempt at a time, until something works again or
	// the patience ends.
	troubled struct {
		of    resource
		why   string
		until time.Time
	}
	// recovered: it works again.
	recovered struct{ of resource }
	// warnBudget: four fifths of it are spent.
	warnBudget struct{ limit string }
	// paced: another number of attempts may run at the same time.
	paced struct{ runtime.AccountChange }
	// parking: nothing starts until then.
	parking struct {
		until time.Time
		why   string
	}
	// unparked: the account works again.
	unparked struct{}
	// tell emits an event.
	tell struct{ Event }
	// outdated: a result says more now.
	outdated struct{}
	// pull asks for tasks.
	pull struct{ n int }
	// halt is the last effect: nothing runs.
	halt struct{}
)

// equipment is what an attempt gets to know of its task.
type equipment struct {
	task    *Task
	fence   uint64    // of the lease; 0: it has to be asked for
	held    bool      // the lease of a queue is
	from    *TaskNote // of the program whose session and workspace an attempt with that lease continues
	ticket  string
	hash    string
	offer   bool // the queue does not know the ticket
	space   space
	partial partial
	orphan  bool
	results map[string]*TaskResult
	told    string
}

// Effects that the actor carries out at once.
type (
	// setAlarm asks for woken.
	setAlarm struct{ at time.Time }
	// kill ends an attempt, and its processes.
	kill struct{ id string }
	// arm has a lease extended, and the attempt under it killed at the deadline.
	arm struct {
		id               string
		fence            uint64
		number           int
		extend, deadline time.Time
	}
	// disarm: the lease is given up.
	disarm struct{ id string }
	// extend asks the queue for more time.
	extend struct{ each []extension }
	// release gives a lease back.
	release struct{ lease queue.Lease }
	// cutCalls ends the calls of the queue after a while.
	cutCalls struct{ after time.Duration }
	// replied answers who waits.
	replied[T any] struct {
		to    *kernel.Promise[T]
		value T
		err   error
	}
)

func (launch) isEffect()     {}
func (again) isEffect()      {}
func (finish) isEffect()     {}
func (claim) isEffect()      {}
func (clearUp) isEffect()    {}
func (runAgain) isEffect()   {}
func (canceling) isEffect()  {}
func (admitting) isEffect()  {}
func (requeued) isEffect()   {}
func (answered) isEffect()   {}
func (pausing) isEffect()    {}
func (troubled) isEffect()   {}
func (recovered) isEffect()  {}
func (warnBudget) isEffect() {}
func (paced) isEffect()      {}
func (parking) isEffect()    {}
func (unparked) isEffect()   {}
func (tell) isEffect()       {}
func (outdated) isEffect()   {}
func (pull) isEffect()       {}
func (halt) isEffect()       {}
func (setAlarm) isEffect()   {}
func (kill) isEffect()       {}
func (arm) isEffect()        {}
func (disarm) isEffect()     {}
func (extend) isEffect()     {}
func (release) isEffect()    {}
func (cutCalls) isEffect()   {}
func (replied[T]) isEffect() {}

// settle answers.
func (r replied[T]) settle() {
	if r.err != nil {
		r.to.Fail(r.err)
	}
	r.to.Resolve(r.value)
}

func (a answered) settle(failed error) {
	switch {
	case a.to == nil:
	case a.err != nil || failed != nil:
		a.to.Fail(joined(a.err, failed))
	default:
		a.to.Resolve(struct{}{})
	}
}

func (e troubled) String() string {
	return fmt.Sprintf("%v; one task at a time tries again, until %s: %s", e.of, e.until.Format(time.RFC3339), e.why)
}

func (e recovered) String() string {
	return [...]string{"", "the agent's program starts again", "the shared MCP server starts again", "the model's API works again", "this machine works again"}[e.of]
}
