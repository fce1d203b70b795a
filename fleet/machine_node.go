package fleet

import (
	"fmt"
	"time"

	"github.com/agent-troupe/troupe/fleet/queue"
)

// node is a task, and all that the job knows of it.
type node struct {
	spec
	state      nodeState
	waits      int     // tasks of after that are not over
	dependents []*node // the tasks that come right after it, in order
	status     Status
	asked      steer     // the pending decision about the task whose attempt runs
	later      []steered // decisions that wait until the queue has answered

	starts   int       // of any kind
	base     int       // starts before the last requeue
	before   int       // starts by other programs since then that count
	free     int       // starts since then that count for nothing
	spared   bool      // its last start is one of them
	deaths   int       // hosts in a row that died while it ran
	alone    bool      // nothing else ran when the last of them died
	troubled time.Time // since when it has failed without being at fault, or zero
	attempts int       // that ended by themselves
	equal    int       // failures with the text last
	last     string
	due      time.Time
	next     launch // how it begins
	slot     int

	usage Usage // of its attempts since it was requeued last
	paid  Usage // before that

	// Of the attempt that runs.
	number  int
	since   time.Time
	doing   string
	session string // its id in the runtime; "": not known yet
	spent   Usage  // so far
	lost    bool   // its lease is
	fan     fan
	said    sayings

	space    space
	partial  partial // of a session that continues
	orphan   bool    // an earlier host died while an attempt was under way
	tries    []Attempt
	tried    bool    // the last start is among them: it was not refused, and not decided without an agent
	report   *report // of the last attempt, until the result is made
	remains  *remains
	result   *TaskResult // that is durable
	unkept   *TaskResult // that is made, and is not durable yet
	former   *TaskResult // that is void
	requeued int         // results that are void
	calls    []*call     // that wait for a person, or did
	asks     bool        // one has waited since an earlier process

	fence     uint64       // of the lease, where no other program may have the task
	tenure    *tenure      // the lease of the queue; nil without a lease
	late      *queue.Lease // that the queue extended after this program had lost it; to be given back
	away      bool         // it rests because another program has it
	elsewhere time.Time    // until then it rests without a call: another program has it
	freed     bool         // since the queue was asked for it, it was given back
	foreign   *TaskResult  // of another program
	abroad    bool         // its result is another program's, and only how it ended is kept
	// The journal does not have the task: this program has had nothing to do with it.
	unadmitted bool
	ending     *ending                  // what the queue is asked about
	ahead      *ahead                   // the result of a ticket that the task will have
	early      *seen                    // the note of such a ticket
	answers    map[string]decidedRecord // to calls, also of other programs; by their ids
	noted      Usage                    // the part of usage that the queue knows
	left       TaskNote                 // of the program that has the task, or had it last
	ran        uint64                   // the fence of the last lease under which this program, in its directory, has run it
	// For whom it waits while it is free.
	reservation reservation
	jots        jotting
	sentence    *sentence // how it ends once no other program has it
	doubtful    uint64    // the fence of a result of which it is not known whether the queue has it

	// Of a journal that is read.
	open     bool    // an attempt was under way when a host died
	runs     bool    // an attempt is under way in the host that is read
	voided   bool    // the attempt under way is of before a requeue
	canceled bool    // and not over: its attempt was to end
	seen     Usage   // of the attempt under way, until its last turn
	cut      Attempt // the attempt under way, if its host dies
}

// spec is what a machine has to know of a task before it begins.
type spec struct {
	id        string
	task      *Task
	hash      string
	order     int
	priority  int
	after     []string
	exclusive string
	budget    *Budget
	clean     bool
	notBefore time.Time // zero: at once
	clears    bool      // its workspace is cleared up when it is over
}

type nodeState int8

const (
	nodeWaits   nodeState = iota // for other tasks
	nodeReady                    // in the queue, or held by its key
	nodeRuns                     // an attempt is under way
	nodeClaims                   // the queue is asked whether its result counts
	nodeRests                    // until its backoff is over, or its NotBefore
	nodeAsks                     // until a person has decided about a call
	nodeOver                     // has its result
	nodeWithout                  // will have no result in this process: the job stopped while it ran
)

// partial is what turns have said whose attempt did not come to its end.
type partial struct {
	Text       string
	Structured []byte
	ToolCalls  int
	Usage      Usage
}

// sentence is how a task ends without an attempt.
type sentence struct {
	status Status
	why    string
}

// ahead is a result of a ticket that a decision will make, which has not come yet.
type ahead struct {
	number int
	result *TaskResult
}

// ending is what the queue is asked about.
type ending struct {
	ended
	status Status
	why    string // if there was no attempt
	ran    bool   // with the end of an attempt
	fence  uint64 // of the lease; 0: it has yet to be taken
	result *TaskResult
}

// begun reports whether the task was started since it was requeued last.
func (n *node) begun() bool { return n.starts > n.base }

// ticket is the name of the task in the queue. A task that is requeued has another one: the
// queue keeps the result that is void.
func (n *node) ticket() string {
	if n.requeued == 0 {
		return n.id
	}
	return fmt.Sprintf("%s#%d", n.id, n.requeued)
}

// is reports whether the attempt with the number runs.
func (n *node) is(number int) bool { return n != nil && n.state == nodeRuns && n.number == number }

// reset resets a task to its initial state, keeping its start count, which names its
// files, and its usage.
func (n *node) reset() {
	n.paid.add(n.usage)
	n.base, n.attempts, n.equal, n.last, n.usage, n.next, n.asks = n.starts, 0, 0, "", Usage{}, launch{mode: modeFresh}, false
	n.before = 0
	n.free, n.deaths, n.troubled, n.partial, n.calls = 0, 0, time.Time{}, partial{}, nil
	n.answers, n.noted, n.left, n.sentence, n.reservation = nil, Usage{}, TaskNote{}, nil, reservation{}
}

// counts reports whether a task that is over has failed, for Job.FailOn.
func (n *node) counts() bool {
	f := n.status.Family()
	return f != familySuccess && f != familyNotRun
}
