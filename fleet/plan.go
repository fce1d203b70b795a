package fleet

import (
	"container/heap"
	"fmt"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// plan decides what starts when. It is a value: no clock, no goroutine, no I/O. step
// appends effects to out; equal inputs at equal times have equal effects.
type plan struct {
	rules rules
	nodes map[string]*node
	ready readyQueue
	rest  restQueue
	busy  map[string]bool    // exclusive keys in use
	held  map[string][]*node // ready, but their key is in use
	slots []bool             // in use
	// account lets attempts start, and is shared with other jobs. It is the one input of a
	// plan that does not come through step.
	account *runtime.AccountMember
	outages outages
	paced   int       // the limit that was reported last
	changes int       // of the account's pace, when it was
	parked  time.Time // until then, as was reported last

	clearing         int // tasks that are over and whose workspaces are cleared up
	running, waiting int
	over, failed     int
	spent            Usage
	more             bool      // tasks may be added
	stopped          *Stop     // nothing starts any more
	warned           bool      // of the budget
	paused           bool      // nothing starts until it goes on
	single           bool      // what runs may be what hosts die of
	alarm            time.Time // of the last setAlarm
	halted           bool
}

// rules are what a plan goes by.
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
	account     *runtime.Account // nil: one of its own
	patience    time.Duration    // with what all attempts need; 0: its failures are the task's
	began       time.Time
	shared      bool   // other programs may take the tasks
	wake        func() // gives the plan woken; nil: not needed
}

// node is a task in a plan.
type node struct {
	spec
	state      nodeState
	waits      int       // tasks of after that are not over
	dependents []*node   // the tasks that come right after it, in order
	asks       bool      // a call waits for a person since an earlier process
	starts     int       // of any kind
	base       int       // starts before the last requeue
	free       int       // starts since then that count for nothing
	spared     bool      // its last start is one of them
	deaths     int       // hosts in a row that died while it ran
	alone      bool      // nothing else ran when the last of them died
	troubled   time.Time // since when it has failed by no fault of its own; zero: it has not
	attempts   int       // that ended by themselves
	equal      int       // failures with the text last
	last       string
	usage      Usage
	due        time.Time
	next       launch // how it begins
	slot       int
	status     Status
	asked      steer     // what somebody wants of the task whose attempt runs
	away       bool      // it rests because another program has it
	foreign    *foreign  // its result, which came while it ran here
	claim      *ended    // how its attempt went, while the queue is asked
	later      []steered // decisions that wait for the queue
}

// spec is what a plan has to know of a task.
type spec struct {
	id        string
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
	nodeClaims                   // its attempt is over, and the queue is asked whether its result counts
	nodeRests                    // until its backoff is over, or its NotBefore
	nodeAsks                     // until a person has decided about a call
	nodeOver                     // has its result
	nodeWithout                  // will have none in this process: the job stopped while it ran
)

func newPlan(r rules) *plan {
	p := &plan{rules: r, nodes: map[string]*node{}, busy: map[string]bool{}, held: map[string][]*node{}, more: true}
	p.outages = outages{patience: r.patience, rand: r.rand}
	if p.rules.account == nil {
		p.rules.account = new(runtime.Account)
	}
	p.account = p.rules.account.Join(r.began, r.pace.bounds(), r.wake)
	_, p.changes = p.account.Last()
	p.paced = p.limit()
	return p
}

// limit is how many attempts may run at the same time.
func (p *plan) limit() int {
	if limit, ok := p.account.Limit(); ok {
		return limit
	}
	return p.rules.concurrency
}

// step takes an input and returns what is to be done.
func (p *plan) step(now time.Time, in input, out []effect) []effect {
	switch in := in.(type) {
	case added:
		out = p.add(in, out)
	case ended:
		out = p.ended(now, in, out)
	case claimed:
		out = p.claimed(now, in, out)
	case drained:
		p.stop(in.stop)
	case retuned:
		p.rules.concurrency = max(in.concurrency, 0)
		if _, ok := p.account.Limit(); ok {
			p.account.Unpace()
			out = p.report(now, "set by hand", out)
		}
	case pressed:
		p.account.Pressed(now, in.id, in.saw == overloaded, in.after)
	case worked:
		p.account.Worked(in.id)
		p.reach(in.id, ofAPI)
	case reached:
		p.reach(in.id, in.of)
	case approved:
		out = p.approve(in.id, out)
	case paused:
		out = p.pause(in.on, out)
	case steered:
		out = p.steer(in, out)
	case freed:
		p.freed(now, in.id)
	case foreign:
		out = p.finishedElsewhere(&in, out)
	case starving:
		p.account.Starved(in.on)
	case cleared:
		p.slots[in.slot] = false
		p.clearing--
	case woken, settledOnAccept:
	}
	return p.settle(now, p.outages.news(p.look(now, out)))
}

func (p *plan) add(in added, out []effect) []effect {
	for i := range in.specs {
		n := &node{spec: in.specs[i], next: launch{mode: modeFresh}}
		p.nodes[n.id] = n
		p.waiting++
		if k := in.past[n.id]; k != nil {
			n.starts, n.base, n.attempts, n.usage, n.status, n.asks = k.starts, k.base, k.attempts, k.usage, k.status, k.asks
			n.free, n.deaths, n.alone = k.free, k.deaths, k.alone
			p.spent.add(k.usage)
			p.spent.add(k.paid)
			if k.next.mode != "" {
				n.next = k.next
			}
		}
	}
	for i := range in.specs { // all are known now
		n := p.nodes[in.specs[i].id]
		for _, id := range n.after {
			before := p.nodes[id]
			if before == nil {
				continue
			}
			before.dependents = append(before.dependents, n)
			if before.state != nodeOver {
				n.waits++
			}
		}
	}
	for i := range in.specs {
		n := p.nodes[in.specs[i].id]
		if n.status != "" { // of an earlier process
			out = p.close(n, n.status, "", false, out)
		} else if k := in.past[n.id]; k != nil && k.canceled { // the host died before the attempt had ended
			p.unqueue(n)
			out = p.close(n, Canceled, whyCanceled, true, out)
		}
	}
	for i := range in.specs {
		if n := p.nodes[in.specs[i].id]; n.state == nodeWaits {
			out = p.enqueue(n, out)
		}
	}
	p.more = p.more && !in.last
	return out
}

// enqueue makes a task ready, or rest until its time. One that has not begun waits for the
// tasks before it, and is skipped if one of them was not accepted.
func (p *plan) enqueue(n *node, out []effect) []effect {
	if !n.begun() {
		if n.waits > 0 {
			n.state = nodeWaits
			return out
		}
		for _, id := range n.after {
			if before := p.nodes[id]; before != nil && before.status != Accepted {
				return p.close(n, Skipped, fmt.Sprintf("task %s, which it comes after, is %s", id, before.status), true, out)
			}
		}
	}
	if n.asks {
		n.asks, n.state = false, nodeAsks
		return out
	}
	if !n.notBefore.IsZero() {
		n.state, n.due = nodeRests, n.notBefore
		heap.Push(&p.rest, n) // settle takes it out at once if its time has come
		return out
	}
	n.state = nodeReady
	heap.Push(&p.ready, n)
	return out
}

// close ends a task. tell: its result is new.
func (p *plan) close(n *node, s Status, why string, tell bool, out []effect) []effect {
	if n.state == nodeOver {
		return out
	}
	n.state, n.status = nodeOver, s
	p.over++
	p.waiting--
	if n.counts() {
		p.failed++
	}
	if tell {
		out = append(out, finish{n.id, s, why})
	}
	if tell && n.clears && n.starts > 0 {
		p.clearing++
		out = append(out, clearUp{n.id, p.takeSlot(n.slot)})
	}
	for _, d := range n.dependents {
		if d.waits--; d.waits == 0 && d.state == nodeWaits && d.status == "" { // not over in an earlier process
			out = p.enqueue(d, out)
		}
	}
	return out
}

// begun reports whether the task was started since it was requeued last.
func (n *node) begun() bool { return n.starts > n.base }

func (p *plan) end(now time.Time, in ended, out []effect) []effect {
	n := p.nodes[in.id]
	if n == nil || n.state != nodeRuns {
		return out
	}
	verdict := p.verdict(now, &in)
	p.outages.ends(n.id)
	n.deaths, n.spared = 0, false
	spent := in.stops == StopUsageLimit && p.park(now, &in)
	f := in.status.Family()
	p.account.End(now, n.id, f == familySuccess || f == familyAgent)
	p.running--
	p.single = false // it ran alone
	p.slots[n.slot] = false
	p.free(n)
	n.usage.add(in.usage)
	p.spent.add(in.usage)
	if limit := p.rules.budget.reached(p.spent, 0.8); limit != "" && !p.warned {
		p.warned = true
		out = append(out, warnBudget{limit})
	}
	if n.foreign != nil {
		n.asked = steerNone
		p.spent.add(n.foreign.usage)
		return p.close(n, n.foreign.status, "", true, out)
	}
	if in.refused || in.lost {
		if out, over := p.leave(now, n, &in, out); over {
			return out
		}
	}
	if n.asked != steerNone {
		n.due = now
		return p.obey(n, &in, out)
	}
	if verdict != "" {
		return p.close(n, verdict, "", true, out)
	}
	if in.fault != ofTask && in.status != Interrupted && p.rules.patience > 0 {
		return p.suffer(now, n, &in, out)
	}
	p.remember(n, &in)
	n.troubled = time.Time{}
	if in.asks {
		n.state = nodeAsks
		return append(out, again{id: n.id})
	}
	if spent {
		n.state = nodeRests
		n.due, _ = p.account.Parked()
		heap.Push(&p.rest, n)
		return append(out, again{id: n.id, due: n.due})
	}
	if in.stops != "" {
		p.stop(Stop{Reason: in.stops, Detail: in.why})
	}
	if in.status == Interrupted || in.stops != "" {
		n.state = nodeWithout
		return append(out, again{id: n.id})
	}
	if !in.free {
		n.attempts++
	}
	n.state, n.due = nodeRests, now.Add(max(in.after, p.rules.backoff.Delay(max(n.attempts, 1), p.rules.rand)))
	heap.Push(&p.rest, n)
	return append(out, again{id: n.id, due: n.due, counts: !in.free})
}

// failures counts the failures in a row with the text of an attempt, which is the last one.
func (n *node) failures(in *ended) int {
	if in.why == n.last && in.turns <= n.next.turns { // else it got on
		return n.equal + 1
	}
	return 1
}

// remember decides how the next attempt begins. Session and workspace travel together:
// a session is resumed only where it worked.
func (p *plan) remember(n *node, in *ended) {
	n.equal, n.last = n.failures(in), in.why
	n.next = launch{mode: modeFresh, why: in.why}
	switch {
	case n.clean && in.status != Interrupted || in.space == "":
	case in.poisoned || in.session == "":
		n.next.mode, n.next.space = modeAgain, in.space
	default:
		n.next.mode, n.next.space, n.next.session, n.next.turns = modeResume, in.space, in.session, in.turns
	}
}

func (p *plan) stop(s Stop) {
	if p.stopped == nil {
		p.stopped = &s
	}
}

// free gives the key of a task to those that wait for it.
func (p *plan) free(n *node) {
	if n.exclusive == "" {
		return
	}
	delete(p.busy, n.exclusive)
	for _, h := range p.held[n.exclusive] {
		heap.Push(&p.ready, h)
	}
	delete(p.held, n.exclusive)
}

// settle starts what may start, and asks for an alarm.
func (p *plan) settle(now time.Time, out []effect) []effect {
	if limit := p.rules.budget.exceeded(p.spent); limit != "" && p.waiting > 0 {
		p.stop(Stop{Reason: StopBudget, Detail: "the job's budget of " + limit + " is spent"})
	}
	if p.rules.failOn.exceeded(p.failed, p.over, p.total()) {
		p.stop(Stop{Reason: StopFailures, Detail: fmt.Sprintf("%d of %s %s failed", p.failed, shown.Count(p.over, "task"), shown.Verb(p.failed, "has", "have"))})
	}
	for p.rest.Len() > 0 && !p.rest[0].due.After(now) {
		n, _ := heap.Pop(&p.rest).(*node)
		n.state = nodeReady
		heap.Push(&p.ready, n)
	}
	wants := false
starting:
	for p.stopped == nil && !p.paused && p.running < p.limit() && p.clearing <= p.limit() && p.ready.Len() > 0 && !wants {
		n := p.first()
		switch {
		case p.quarantines(n) != "":
			p.take(n)
			out = p.close(n, Quarantined, p.quarantines(n), true, out)
		case n.exclusive != "" && p.busy[n.exclusive]:
			p.take(n)
			p.held[n.exclusive] = append(p.held[n.exclusive], n)
		case !p.lets(now, n):
			break starting
		case !p.account.Enter(now, n.id):
			wants = true
		default:
			p.take(n)
			out = append(out, p.launch(n))
		}
	}
	p.account.Wants(wants)
	if at := p.next(now); !at.IsZero() && p.stopped == nil && !at.Equal(p.alarm) {
		p.alarm = at
		out = append(out, setAlarm{at})
	}
	if p.running == 0 && !p.halted && (p.stopped != nil || !p.more && p.waiting == 0) {
		p.halted = true
		p.account.Leave()
		out = append(out, halt{})
	}
	return out
}

// next is when something may start although nothing happens before; zero: nothing may.
func (p *plan) next(now time.Time) time.Time {
	var at time.Time
	sooner := func(t time.Time) {
		if t.After(now) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	if p.rest.Len() > 0 {
		sooner(p.rest[0].due)
	}
	if p.ready.Len() > 0 {
		sooner(p.account.Next(now))
		sooner(p.outages.next(now))
	}
	return at
}

func (p *plan) launch(n *node) launch {
	n.starts++
	n.state, n.away = nodeRuns, false
	p.running++
	p.outages.begins(n.id)
	p.single = n.suspect()
	if n.exclusive != "" {
		p.busy[n.exclusive] = true
	}
	n.slot = p.takeSlot(0)
	l := n.next
	l.id, l.number, l.slot = n.id, n.starts, n.slot
	l.used = n.usage
	l.usd = leastUSD(p.rules.budget.leftUSD(p.spent), n.budget.leftUSD(n.usage))
	return l
}

// takeSlot takes the slot, or the lowest one that is free if somebody has it.
func (p *plan) takeSlot(slot int) int {
	if slot >= len(p.slots) || p.slots[slot] {
		slot = slices.Index(p.slots, false)
	}
	if slot < 0 {
		slot = len(p.slots)
		p.slots = append(p.slots, false)
	}
	p.slots[slot] = true
	return slot
}

// total is the number of tasks, 0 while it is not known.
func (p *plan) total() int {
	if p.more {
		return 0
	}
	return len(p.nodes)
}

// wants is how many tasks a source should offer now.
func (p *plan) wants() int {
	if p.stopped != nil || !p.more {
		return 0
	}
	return max(2*p.limit()+8-p.ready.Len()-p.running, 0)
}
