package fleet

import (
	"time"

	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// pacer is the part of an account that a machine needs.
type pacer interface {
	Limit() (int, bool)
	Unpace()
	Pressed(now time.Time, task string, overloaded bool, after time.Duration)
	Worked(task string)
	Starved(on bool)
	End(now time.Time, task string, well bool)
	Spent(task string, until time.Time, jitter time.Duration, why string)
	Parked() (time.Time, string)
	Last() (runtime.AccountChange, int)
	Enter(now time.Time, task string) bool
	Wants(on bool)
	Next(now time.Time) time.Time
	Leave()
}

// rules are what a machine goes by.
type rules struct {
	concurrency int
	attempts    int // that count
	starts      int // of any kind
	equal       int // failures in a row with the same text
	backoff     supervisor.Backoff
	rand        session.Rand
	failOn      Threshold
	budget      *Budget
	pace        *Pace
	park        time.Duration    // the longest wait for a window; 0: none
	account     *runtime.Account // nil: a separate one
	patience    time.Duration    // with what all attempts need; 0: its failures are the task's
	began       time.Time
	worker      string // this program in the queue; "": no other program may have tasks
	share       Share
	host        string // of this program, for others
	grace       time.Duration
	move        bool // Job.Move
	affinity    time.Duration
	subagents   Subagents
	deferred    bool      // sessions wait for batches, so that many tasks run when a host dies
	onAccept    bool      // something runs after a task was accepted
	unsampled   int       // tasks that Job.Sample leaves for later
	source      bool      // tasks are asked for
	fence       uint64    // the highest one of earlier processes
	parked      time.Time // until then, as earlier processes have said
	wake        waker     // gives the machine woken; nil: not needed
}

// waker is called when the account has changed.
type waker interface{ Wake() }

func newMachine(r rules) *machine {
	m := &machine{rules: r, nodes: map[string]*node{}, busy: map[string]bool{}, held: map[string][]*node{}, decided: map[string]bool{}, expected: map[string]bool{}, more: true, fence: r.fence}
	m.outages = outages{patience: r.patience, rand: r.rand}
	if m.rules.account == nil {
		m.rules.account = new(runtime.Account)
	}
	var wake func()
	if r.wake != nil {
		wake = r.wake.Wake
	}
	m.account = m.rules.account.Join(r.began, r.pace.bounds(), wake)
	_, m.changed = m.account.Last()
	m.paced = m.limit()
	if r.parked.After(r.began) {
		m.parked = r.parked // it is in the journal already
	}
	return m
}
