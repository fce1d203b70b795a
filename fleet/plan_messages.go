package fleet

import (
	"time"

	"github.com/agent-troupe/troupe/runtime"
)

// input is what happens to a plan.
type input interface{ isInput() }

type (
	// added: tasks to run. past is what an earlier process knew of them.
	added struct {
		specs []spec
		past  map[string]*past
		last  bool // no more will come
	}
	// ended: an attempt is over.
	ended struct {
		id string
		outcome
	}
	// drained: start nothing more.
	drained struct{ stop Stop }
	// retuned: run that many at a time.
	retuned struct{ concurrency int }
	// woken: the alarm went off.
	woken struct{}
	// pressed: an attempt has seen the API in trouble.
	pressed struct {
		id    string
		saw   trouble
		after time.Duration // that the API asked for
	}
	// worked: a turn of an attempt has a result of the model.
	worked struct{ id string }
	// freed: no program has the task any more.
	freed struct{ id string }
	// foreign: another program has finished the task.
	foreign struct {
		id     string
		status Status
		usage  Usage
	}
	// cleared: a clearUp has ended.
	cleared struct{ slot int }
	// settledOnAccept: Job.OnAccept has ended for a task, whose result says more now. The plan
	// has nothing to decide.
	settledOnAccept struct{}
	// claimed: the queue has taken the result of a task, or not.
	claimed struct {
		id   string
		lost bool
	}
	// starving: the machine has too little time for what runs, or has enough again.
	starving struct{ on bool }
)

func (added) isInput()           {}
func (ended) isInput()           {}
func (drained) isInput()         {}
func (retuned) isInput()         {}
func (woken) isInput()           {}
func (pressed) isInput()         {}
func (worked) isInput()          {}
func (freed) isInput()           {}
func (foreign) isInput()         {}
func (cleared) isInput()         {}
func (settledOnAccept) isInput() {}
func (starving) isInput()        {}
func (claimed) isInput()         {}

// outcome is how an attempt went, in the terms of a plan.
type outcome struct {
	status    Status
	why       string        // equal texts are equal failures
	retry     bool          // the same may succeed
	poisoned  bool          // not in this conversation
	free      bool          // it does not count against the attempts
	asks      bool          // a call waits for a person
	refused   bool          // another program has the task: nothing was started
	lost      bool          // another program has the task: the attempt was killed
	fault     resource      // what has failed, if it is shared: then it is no failure of the task
	unstarted bool          // the agent was never ready
	gated     bool          // a breaker did not let it start
	stops     string        // reason for the whole job; "": it goes on
	after     time.Duration // the least wait before a retry
	usage     Usage
	session   string // to resume; "": none
	turns     int    // that are done
	space     string // workspace
}

// past is what the journal says of a task.
type past struct {
	starts, attempts int
	base             int   // starts before the last requeue
	free             int   // starts since then that count for nothing
	deaths           int   // hosts in a row that died while it ran
	alone            bool  // nothing else ran when the last of them died
	usage            Usage // since then
	paid             Usage // before it
	asks             bool  // a call waits for a person
	canceled         bool  // and not over: its attempt was to end
	next             launch
	status           Status // "": it is not over
}

// effect is what a plan wants done.
type effect interface{ isEffect() }

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
		usd     float64 // what is left to spend; 0: no limit
	}
	// again: the attempt failed, and the next one follows.
	again struct {
		id     string
		due    time.Time // zero: not in this process
		counts bool      // against the attempts
		next   launch    // how it goes on
		free   bool      // the start counts for nothing
	}
	// finish: the task is over.
	finish struct {
		id     string
		status Status
		why    string // if it never ran
	}
	// claim gives the queue the result of a task.
	claim struct {
		id     string
		status Status
	}
	// clearUp runs the teardown of a task that is over. The slot is free again with cleared.
	clearUp struct {
		id   string
		slot int
	}
	// setAlarm asks for woken.
	setAlarm struct{ at time.Time }
	// warnBudget: four fifths of it are spent.
	warnBudget struct{ limit string }
	// paced: another number of attempts may run at the same time.
	paced struct{ runtime.AccountChange }
	// parking: nothing starts until then.
	parking struct {
		until time.Time
		why   string
	}
	// losing: another program has finished the task whose attempt runs.
	losing struct{ id string }
	// unparked: the account works again.
	unparked struct{}
	// halt is the last effect: nothing runs.
	halt struct{}
)

func (launch) isEffect()     {}
func (again) isEffect()      {}
func (finish) isEffect()     {}
func (clearUp) isEffect()    {}
func (setAlarm) isEffect()   {}
func (warnBudget) isEffect() {}
func (paced) isEffect()      {}
func (parking) isEffect()    {}
func (unparked) isEffect()   {}
func (losing) isEffect()     {}
func (halt) isEffect()       {}
func (claim) isEffect()      {}
