package simtests_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/fleet"
)

// watched is what the oracles of a job know, of all its hosts.
type watched struct {
	known    map[string]fleet.Status // results that a reader has seen and nobody has made void
	doubtful map[string]bool         // it is not known whether the result is void
	said     map[string]fleet.Status // what the verifier said last
	canceled map[string]bool         // durably
	old      map[string]bool         // it may have begun, since it was requeued last
	allowed  map[string]int          // calls of a task
	deploys  map[string]int          // calls that ran
	starts   int
	pressed  bool // some attempt may have seen an overload

	// of the host that runs
	handle  *fleet.Handle
	ready   chan struct{}   // closed when handle and what follows from it are known
	again   map[string]bool // results that its reader has seen
	over    map[string]fleet.Status
	running map[string]*tried
	parked  time.Time
	probe   string
	dead    bool // its disk takes nothing any more
	limit   int
	byHand  int  // the highest number that a person may have set; 0: none
	halted  bool // paused, or ended
	cuts    int
	cut     time.Time
	well    int // attempts since the last change of the limit that may have gone well

	requeued, grew, fell, deployedOnce, corrected bool
}

// tried is an attempt that is under way.
type tried struct {
	presses bool // it may see an overload
	resumed bool
	cuts    int  // before it
	waits   bool // for a person, with or without a process
}

func newWatched() watched {
	return watched{
		known: map[string]fleet.Status{}, doubtful: map[string]bool{}, said: map[string]fleet.Status{},
		canceled: map[string]bool{}, old: map[string]bool{}, allowed: map[string]int{}, deploys: map[string]int{},
	}
}

// next forgets what was of the last host.
func (b *batch) next() {
	b.ready = make(chan struct{})
	b.handle, b.parked, b.probe, b.dead = nil, time.Time{}, "", false
	b.again, b.over, b.running = map[string]bool{}, map[string]fleet.Status{}, map[string]*tried{}
	b.cuts, b.cut, b.byHand, b.halted = 0, time.Time{}, 0, false
	if b.starts > 0 { // the account knows of attempts whose end was not told
		b.well = len(b.job.Tasks)
	}
	for id := range b.doubtful { //troupe:maporder each by itself
		delete(b.known, id)
		delete(b.canceled, id)
		b.old[id] = true // perhaps
	}
	clear(b.doubtful)
	for id, all := range b.inJournal() { //troupe:maporder each by itself
		b.over[id] = all[len(all)-1]
	}
}

// must reports what is broken; the name of the oracle comes first.
func (b *batch) must(ok bool, format string, args ...any) {
	if !ok {
		b.Errorf(format, args...)
	}
}

// retuned notes the number of attempts that a person is about to set.
func (b *batch) retuned(n int) { b.byHand = max(b.byHand, n) }

// doubt says that the results of a task and of those that come after it may be void.
func (b *batch) doubt(id string) {
	b.doubtful[id] = true
	for _, t := range b.job.Tasks {
		for _, before := range t.After {
			if before == id && !b.doubtful[t.ID] {
				b.doubt(t.ID)
			}
		}
	}
}

// got takes a result that the reader has.
func (b *batch) got(r *fleet.TaskResult) {
	status, old := b.known[r.ID]
	b.must(!old || status == r.Status, "exactly-once: %s was %s and is %s", r.ID, status, r.Status)
	b.must(!old || r.Earlier, "exactly-once: a second result of %s", r.ID)
	b.must(!b.again[r.ID], "exactly-once: %s came twice to one reader", r.ID)
	b.must(!b.canceled[r.ID] || r.Status == fleet.Canceled, "canceled: %s is %s", r.ID, r.Status)
	usd, turns := 0.0, 0
	for i := range r.Attempts {
		usd, turns = usd+r.Attempts[i].Usage.USD, turns+r.Attempts[i].Usage.Turns
	}
	b.must(turns <= r.Usage.Turns && usd < r.Usage.USD+1e-6, "counted: %s has used %d turns and %v dollars, its attempts %d and %v",
		r.ID, r.Usage.Turns, r.Usage.USD, turns, usd) // a requeue during an attempt adds what has no attempt of its own
	b.known[r.ID], b.again[r.ID], b.over[r.ID] = r.Status, true, r.Status
	b.Note("result of %s: %s, earlier %v", r.ID, r.Status, r.Earlier)
}

// deployed notes that a call ran which needs a person's word.
func (b *batch) deployed(id string) {
	b.deploys[id]++
	b.deployedOnce = true
	b.must(b.deploys[id] <= b.allowed[id], "approved-once: %d calls of %s ran, %d were allowed", b.deploys[id], id, b.allowed[id])
}

// saw checks each event of a job against what must always be so.
func (b *batch) saw(e fleet.Event) {
	_ = b.Runtime().Executor().Await(b.Context(), b.ready)
	b.Note("%s %s/%d %s %s", e.Kind, e.Task, e.Attempt, e.Status, e.Detail)
	switch e.Kind {
	case fleet.EventStarted:
		b.begun(&e)
	case fleet.EventAsked:
		b.running[e.Task].waits = true // it may end without an event
		if b.probe == e.Task {
			b.probe = ""
		}
	case fleet.EventEnded, fleet.EventFinished:
		if t := b.running[e.Task]; t != nil && (!t.presses || t.resumed) { // a verification alone may have been left
			b.well++
		}
		delete(b.running, e.Task)
		if b.probe == e.Task {
			b.probe = ""
		}
		if e.Kind == fleet.EventFinished {
			b.finished(&e)
		}
	case fleet.EventRequeued:
		b.requeued = true
		delete(b.known, e.Task)
		delete(b.again, e.Task)
		delete(b.over, e.Task)
		delete(b.canceled, e.Task)
		delete(b.old, e.Task)
	case fleet.EventPaused, fleet.EventStopped:
		b.halted = true
	case fleet.EventResumed:
		b.halted = false
	case fleet.EventPaced:
		b.paced(&e)
	case fleet.EventParked:
		at, _, _ := strings.Cut(e.Detail, ": ")
		until, err := time.Parse(time.RFC3339, at)
		b.must(err == nil, "parked: %v", err)
		b.parked = until
	case fleet.EventUnparked:
		b.parked, b.probe = time.Time{}, ""
	}
}

// begun takes the start of an attempt.
func (b *batch) begun(e *fleet.Event) {
	b.starts++
	_, over := b.known[e.Task]
	b.must(!over || b.dead, "exactly-once: %s was started after its result", e.Task)
	b.must(!b.canceled[e.Task] || b.dead, "canceled: %s was started", e.Task)
	begun := b.old[e.Task]
	b.old[e.Task] = true
	b.running[e.Task] = &tried{cuts: b.cuts, resumed: e.Detail == "resume"}
	task := b.tasks[e.Task]
	if b.dead { // what ended then is not told, and what starts finds that nothing can be written
		return
	}
	for _, id := range task.After {
		b.must(begun || b.over[id] == fleet.Accepted, "after: %s was started, and %s is %q", e.Task, id, b.over[id])
	}
	n := 0
	for id, t := range b.running { //troupe:maporder each by itself
		if t.waits {
			continue
		}
		n++
		key := b.tasks[id].Exclusive
		b.must(id == e.Task || key == "" || key != task.Exclusive, "exclusive: %s was started while %s has the key %s", e.Task, id, key)
	}
	limit := b.job.Concurrency
	if b.job.Pace != nil {
		limit = b.limit
	}
	limit = max(limit, b.byHand)
	b.must(!b.halted, "paused: %s was started", e.Task)
	b.must(!e.At.Before(task.NotBefore), "paused: %s was started before its time", e.Task)
	b.must(n <= limit, "bounded: %d attempts run, and %d may", n, limit)
	if !b.parked.IsZero() {
		b.must(!e.At.Before(b.parked), "parked: %s was started while the account was parked", e.Task)
		b.must(b.probe == "", "parked: %s is a second probe", e.Task)
		b.probe = e.Task
	}
	if b.job.Budget != nil && b.handle != nil {
		b.must(b.handle.Progress().Usage.USD < b.job.Budget.USD, "budget: %s was started without money", e.Task)
	}
}

// finished takes the new result of a task.
func (b *batch) finished(e *fleet.Event) {
	b.over[e.Task] = e.Status
	if v := b.tasks[e.Task].Verify; v != nil && (e.Status == fleet.Accepted || e.Status == fleet.Rejected) {
		b.must(b.said[e.Task] == e.Status, "verified: %s is %s, and the verifier said %q last", e.Task, e.Status, b.said[e.Task])
		b.corrected = b.corrected || e.Status == fleet.Accepted && v.Rounds > 0
	}
	if b.job.Budget != nil && b.handle != nil {
		most := float64(max(b.job.Concurrency, 6)) // each may be in its last turn
		b.must(b.handle.Progress().Usage.USD < b.job.Budget.USD+most, "budget: %v dollars are spent", b.handle.Progress().Usage.USD)
	}
}

// paced takes a change of the limit: one cut for each overload, however many see it, and
// growth only after as many attempts as may run went well.
func (b *batch) paced(e *fleet.Event) {
	var from, to int
	_, err := fmt.Sscanf(e.Detail, "%d -> %d:", &from, &to)
	p := b.job.Pace
	b.must(err == nil && from == b.limit, "paced: %q, and the limit was %d", e.Detail, b.limit)
	if b.byHand > 0 {
		b.limit, b.well = to, 0
		return
	}
	b.must(to >= p.Floor && to <= p.Ceiling, "paced: %q, not between %d and %d", e.Detail, p.Floor, p.Ceiling)
	well := b.well
	b.limit, b.well = to, 0
	if to < from {
		b.must(to == max(p.Floor, from/2), "paced: %q is no half", e.Detail)
		news := false
		for _, t := range b.running {
			news = news || t.presses && (t.cuts == b.cuts || e.At.Sub(b.cut) >= time.Minute)
		}
		b.must(news || b.dead, "one-cut: %q, and nothing that began after the last cut saw an overload", e.Detail)
		b.cuts, b.cut, b.fell = b.cuts+1, e.At, true
		return
	}
	b.grew = true
	b.must(well >= from || b.dead, "paced: %q after %d attempts", e.Detail, well)
	b.must(to == min(2*from, p.Ceiling) && b.cuts == 0 || to == from+1 && b.pressed, "paced: %q after %d cuts", e.Detail, b.cuts)
}

// reached says where histories of a job are meant to get.
func (b *batch) reached() {
	b.Sometimes("a task was requeued", b.requeued)
	b.Sometimes("more attempts were allowed", b.grew)
	b.Sometimes("an overload was seen", b.fell)
	b.Sometimes("a person allowed a call", b.deployedOnce)
	b.Sometimes("the verifier accepted a task with rounds", b.corrected)
}
