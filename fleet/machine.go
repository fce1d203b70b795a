package fleet

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/runtime"
)

// machine is the state of a job: every task, every count, every decision. It is a value: no
// clock, no goroutine, no I/O. step appends effects to out; equal inputs at equal times have
// equal effects.
type machine struct {
	rules rules
	now   time.Time // of the input
	nodes map[string]*node
	order []*node // as they came
	ready readyQueue
	rest  restQueue
	busy  map[string]bool    // exclusive keys in use
	held  map[string][]*node // ready, but their key is in use
	slots []bool             // in use
	// account lets attempts start, and is shared with other jobs. It is the one input of a
	// machine that does not come through step.
	account pacer
	outages outages
	paced   int       // the limit that was reported last
	changed int       // changes of the account's pace, when it was
	parked  time.Time // until then, as was reported last
	changes []runtime.AccountChange
	gauge   starvation

	running  []*node // in the order of their start; what the queue is asked about then, too
	claiming int     // results that the queue is asked about
	clearing int     // tasks that are over and whose workspaces are cleared up
	after    int     // commands that run after results which were there already
	pulling  bool    // tasks are asked for
	waiting  int
	over     int
	failed   int
	usage    Usage
	fanout   int    // subagents of all attempts, see Subagents.MaxJob
	fence    uint64 // the highest one, where no other program may have tasks

	pending  []change // that is not durable yet
	unread   []*node  // whose result no reader has had
	remarks  map[string]bool
	verdicts []Decided // of people, the last ones

	more    bool  // tasks may be added
	stopped *Stop // nothing starts any more
	told    bool  // an event has said so
	failure *Stop // an error of the job's own
	cause   error // of it
	warned  bool  // of the budget
	paused  bool  // nothing starts until a resume
	// Of decisions in the queue.
	decided  map[string]bool // by id: it was obeyed
	expected map[string]bool // by id: the queue has it, and it has not come back yet
	ordering int             // that the queue is asked to keep
	current  bool            // what the queue had when this program came has come
	halts    bool            // the last decision is a pause
	haltsAll bool            // and nothing starts
	pausing  bool            // as Pause and Resume want it
	single   bool            // what runs may be what hosts die of
	left     bool            // the account
	alarm    time.Time       // of the last setAlarm
	halted   bool
	follows  bool // another input has come
	// replaces: it is in the place of a machine that cannot be trusted any more.
	replaces bool
	final    bool  // no more results
	err      error // after the results
}

// lost is put in the place of a machine that cannot be trusted any more. tasks is how many it had.
func (m *machine) lost(stop Stop, err error) (empty *machine, tasks int) {
	r := m.rules
	r.account, r.pace, r.wake = nil, nil, nil
	empty = newMachine(r)
	empty.stopped, empty.failure, empty.cause, empty.replaces = &stop, &stop, err, true
	return empty, len(m.order)
}

// ahead says how many inputs have come besides the next one. One may be a requeue, so the job does not
// end before them.
func (m *machine) ahead(inputs int) { m.follows = inputs > 0 }

// finish says that no more results come, and why.
func (m *machine) finish(err error) { m.final, m.err = true, err }

// limit is how many attempts may run at the same time.
func (m *machine) limit() int {
	if limit, ok := m.account.Limit(); ok {
		return limit
	}
	return m.rules.concurrency
}

// shared reports whether other programs may have tasks.
func (m *machine) shared() bool { return m.rules.worker != "" }

// step takes an input and returns what is to be done.
func (m *machine) step(now time.Time, in input, out []effect) []effect {
	m.now = now
	return m.settle(now, m.outages.news(m.look(now, in.step(m, out))))
}

func (pulled) step(m *machine, out []effect) []effect {
	m.pulling = false
	return out
}

func (in retuned) step(m *machine, out []effect) []effect {
	m.rules.concurrency = max(in.concurrency, 0)
	if _, ok := m.account.Limit(); !ok {
		return out
	}
	m.account.Unpace()
	return m.report(m.now, "set by hand", out)
}

func (in pressed) step(m *machine, out []effect) []effect {
	m.account.Pressed(m.now, in.id, in.saw == overloaded, in.after)
	return out
}

func (in worked) step(m *machine, out []effect) []effect {
	m.account.Worked(in.id)
	return reached{in.id, ofAPI, in.asked}.step(m, out)
}

func (in starving) step(m *machine, out []effect) []effect {
	m.gauge.set(m.now, in.on)
	m.account.Starved(in.on)
	return out
}

func (in cleared) step(m *machine, out []effect) []effect {
	m.slots[in.slot] = false
	m.clearing--
	return out
}

func (ranAgain) step(m *machine, out []effect) []effect {
	m.after--
	return out
}

func (in said) step(_ *machine, out []effect) []effect { return append(out, tell(in)) }

func (woken) step(_ *machine, out []effect) []effect {
	return out
}

func (in added) step(m *machine, out []effect) []effect {
	for i := range in.specs {
		n := in.past[in.specs[i].id]
		if n == nil {
			n = &node{}
		}
		n.unadmitted = m.rules.share == ShareWork && in.past[in.specs[i].id] == nil
		n.spec = in.specs[i]
		n.next.mode = cmp.Or(n.next.mode, modeFresh)
		n.orphan, n.asks = n.open, n.asks || n.asking()
		m.nodes[n.id] = n
		m.order = append(m.order, n)
		m.waiting++
		m.usage.add(n.usage)
		m.usage.add(n.paid)
		n.noted = n.usage
		if n.result != nil {
			n.result.Earlier = true
			m.unread = append(m.unread, n)
			out = m.catchUp(n, out)
		}
	}
	for i := range in.specs { // all are known now
		n := m.nodes[in.specs[i].id]
		for _, id := range n.after {
			before := m.nodes[id]
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
		n := m.nodes[in.specs[i].id]
		if n.status != "" { // of an earlier process
			out = m.close(n, n.status, "", false, out)
		} else if n.canceled { // the host died before the attempt had ended
			m.unqueue(n)
			out = m.close(n, Canceled, whyCanceled, true, out)
		}
	}
	for i := range in.specs {
		if n := m.nodes[in.specs[i].id]; n.state == nodeWaits {
			out = m.enqueue(n, out)
		}
	}
	m.more = m.more && !in.last
	return out
}

// enqueue makes a task ready, or rest until its time. One that has not begun waits for the
// tasks before it, and is skipped if one of them was not accepted.
func (m *machine) enqueue(n *node, out []effect) []effect {
	if !n.begun() {
		if n.waits > 0 {
			n.state = nodeWaits
			return out
		}
		for _, id := range n.after {
			if before := m.nodes[id]; before != nil && before.status != Accepted {
				return m.close(n, Skipped, fmt.Sprintf("task %s, which it comes after, is %s", id, before.status), true, out)
			}
		}
	}
	if n.asks {
		n.asks, n.state = false, nodeAsks
		return out
	}
	if at := later(n.notBefore, n.elsewhere); !at.IsZero() {
		n.state, n.due, n.away = nodeRests, at, n.elsewhere.After(n.notBefore)
		heap.Push(&m.rest, n) // settle takes it out at once if its time has come
		return out
	}
	n.state, n.due = nodeReady, time.Time{}
	heap.Push(&m.ready, n)
	return out
}

// close ends a task. tell: its result is new. Where other programs may have the task, the
// queue is given the result first.
func (m *machine) close(n *node, s Status, why string, tell bool, out []effect) []effect {
	if n.state == nodeOver || n.state == nodeClaims {
		return out
	}
	if tell && m.shared() && n.ending == nil && n.foreign == nil {
		return m.claim(n, ending{status: s, why: why}, out)
	}
	n.state, n.status = nodeOver, s
	m.over++
	m.waiting--
	if n.counts() {
		m.failed++
	}
	if tell {
		out = m.conclude(n, s, why, out)
	}
	if tell && n.clears && n.starts > 0 {
		m.clearing++
		out = append(out, clearUp{n.id, m.takeSlot(n.slot), s == Accepted, n.requeued, n.remains})
	}
	for _, d := range n.dependents {
		if d.waits--; d.waits == 0 && d.state == nodeWaits && d.status == "" { // not over in an earlier process
			out = m.enqueue(d, out)
		}
	}
	return out
}

func (m *machine) stop(s Stop) {
	if m.stopped == nil {
		m.stopped = &s
	}
}

// drain starts nothing more. From the end of the job's contexts on, calls of the queue have
// little time.
func (in drained) step(m *machine, out []effect) []effect {
	m.stop(in.stop)
	switch in.stop.Reason {
	case StopCanceled, StopJournal, StopQueue, stopError:
		if m.shared() {
			out = append(out, cutCalls{m.rules.grace})
		}
	}
	return out
}

// leave gives the place of an attempt, its slot and its key back.
func (m *machine) leave(n *node) {
	m.running = slices.DeleteFunc(m.running, func(o *node) bool { return o == n })
	m.single = false // it ran alone
	m.slots[n.slot] = false
	if n.exclusive == "" {
		return
	}
	delete(m.busy, n.exclusive)
	for _, h := range m.held[n.exclusive] {
		heap.Push(&m.ready, h)
	}
	delete(m.held, n.exclusive)
}

// settle starts what may start, and asks for an alarm.
func (m *machine) settle(now time.Time, out []effect) []effect {
	if limit := m.rules.budget.exceeded(m.usage); limit != "" && m.waiting > 0 {
		m.stop(Stop{Reason: StopBudget, Detail: "the job's budget of " + limit + " is spent"})
	}
	if m.rules.failOn.exceeded(m.failed, m.over, m.total()) {
		m.stop(Stop{Reason: StopFailures, Detail: fmt.Sprintf("%d of %s %s failed", m.failed, shown.Count(m.over, "task"), shown.Verb(m.failed, "has", "have"))})
	}
	for m.rest.Len() > 0 && !m.rest[0].due.After(now) {
		n, _ := heap.Pop(&m.rest).(*node)
		n.state = nodeReady
		if s := n.sentence; s != nil && m.stopped == nil {
			n.sentence = nil
			out = m.close(n, s.status, s.why, true, out)
			continue
		}
		heap.Push(&m.ready, n)
	}
	wants := false
starting:
	for m.mayStart() && len(m.running) < m.limit() && m.clearing <= m.limit() && m.ready.Len() > 0 && !wants {
		n := m.first()
		switch {
		case m.quarantines(n, n.counted()) != "":
			m.take(n)
			out = m.close(n, Quarantined, m.quarantines(n, n.counted()), true, out)
		case n.exclusive != "" && m.busy[n.exclusive]:
			m.take(n)
			m.held[n.exclusive] = append(m.held[n.exclusive], n)
		case !m.lets(now, n):
			break starting
		case !m.account.Enter(now, n.id):
			wants = true
		default:
			m.take(n)
			out = m.launch(n, out)
		}
	}
	m.account.Wants(wants)
	if at := m.next(now); !at.IsZero() && m.stopped == nil && !at.Equal(m.alarm) {
		m.alarm = at
		out = append(out, setAlarm{at})
	}
	if n := m.wants(); m.rules.source && !m.pulling && n > 0 {
		m.pulling = true
		out = append(out, pull{n})
	}
	if m.stopped != nil && !m.told {
		m.told = true
		out = append(out, tell{Event{Kind: EventStopped, Detail: strings.TrimSuffix(m.stopped.Reason+": "+m.stopped.Detail, ": ")}})
	}
	if done := len(m.running) == 0 && (m.stopped != nil || !m.more && m.waiting == 0); done && !m.halted && !m.follows {
		if !m.left {
			m.left = true
			m.account.Leave()
		}
		m.halted = m.claiming+m.clearing+m.after+m.ordering == 0 && (m.stopped != nil || !m.shared() || m.current && len(m.expected) == 0)
		if m.halted {
			out = append(out, halt{})
		}
	}
	return out
}

// next is when something may start although nothing happens before; zero: nothing may.
func (m *machine) next(now time.Time) time.Time {
	var at time.Time
	sooner := func(t time.Time) {
		if t.After(now) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	if m.rest.Len() > 0 {
		sooner(m.rest[0].due)
	}
	if m.ready.Len() > 0 && m.rules.share != ShareSubmit {
		sooner(m.account.Next(now))
		sooner(m.outages.next(now))
	}
	return at
}

func (m *machine) launch(n *node, out []effect) []effect {
	n.starts++
	n.state, n.away, n.freed, n.elsewhere, n.due = nodeRuns, false, false, time.Time{}, time.Time{}
	n.number, n.since, n.doing, n.lost, n.spent, n.fan, n.said = n.starts, m.now, "preparing", false, Usage{}, fan{}, sayings{}
	m.running = append(m.running, n)
	m.outages.begins(n.id)
	m.single = n.suspect()
	if n.exclusive != "" {
		m.busy[n.exclusive] = true
	}
	n.slot = m.takeSlot(0)
	if n.fence == 0 && !m.shared() {
		n.fence = m.nextFence()
	}
	l := n.next
	l.id, l.number, l.slot = n.id, n.starts, n.slot
	l.used = n.usage
	l.usd = m.leavesUSD(n)
	l.with = &equipment{
		task: n.task, fence: n.fence, space: space{Dir: l.space}, orphan: n.orphan, results: m.resultsOf(n.after),
		told: n.told(), ticket: n.ticket(), hash: n.hash, offer: n.requeued > 0,
	}
	if n.space.Dir == l.space {
		l.with.space = n.space
	}
	if l.mode == modeResume {
		l.with.partial = n.partial
	}
	if n.tenure != nil {
		l.with.fence, l.with.held = n.tenure.Fence, true
		l.mode, l.with.from = m.begins(n), m.inherited(n)
		return n.arm(append(out, l), m.now)
	}
	return append(out, l)
}

// leavesUSD is what budgets leave for a task; 0: no limit.
func (m *machine) leavesUSD(n *node) float64 {
	return leastUSD(m.rules.budget.leftUSD(m.usage), n.budget.leftUSD(n.usage))
}

// nextFence is higher than all before it, also those of earlier processes.
func (m *machine) nextFence() uint64 {
	m.fence++
	return m.fence
}

// takeSlot takes the slot, or the lowest free one if it is taken.
func (m *machine) takeSlot(slot int) int {
	if slot >= len(m.slots) || m.slots[slot] {
		slot = slices.Index(m.slots, false)
	}
	if slot < 0 {
		slot = len(m.slots)
		m.slots = append(m.slots, false)
	}
	m.slots[slot] = true
	return slot
}

// total is the number of tasks, 0 while it is not known.
func (m *machine) total() int {
	if m.more {
		return 0
	}
	return len(m.nodes)
}

// wants is how many tasks a source should offer now.
func (m *machine) wants() int {
	if m.stopped != nil || !m.more {
		return 0
	}
	return max(2*m.limit()+8-m.ready.Len()-len(m.running), 0)
}
