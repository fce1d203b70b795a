package fleet

import (
	"container/heap"
	"time"

	"github.com/agent-troupe/troupe/fleet/queue"
)

// ended takes the end of an attempt. Where other programs may have the task, the queue is
// asked about a result before the task ends with it.
func (in ended) step(m *machine, out []effect) []effect {
	n := m.nodes[in.id]
	if n == nil || n.state != nodeRuns {
		return out
	}
	if n.lost {
		in.status, in.lost, in.stops = Interrupted, true, ""
	}
	in.asks = in.asks && in.status == Interrupted && !in.refused && !in.lost
	if n.late != nil { // nothing runs under it any more
		out = append(out, release{*n.late})
		n.late = nil
	}
	m.keep(n, &in)
	if m.shared() {
		switch status := m.verdict(m.now, &in); {
		case status == "":
		case n.tenure == nil:
			n.loses(&in)
		default:
			return m.claim(n, ending{ended: in, status: status, ran: true}, out)
		}
	}
	return m.rests(n, m.end(m.now, in, "", out))
}

// loses makes the end of an attempt void: its result does not count.
func (n *node) loses(in *ended) {
	in.status, in.why, in.lost = Interrupted, queue.ErrLeaseLost.Error(), true
	if n.tried {
		last := &n.tries[len(n.tries)-1]
		last.Status, last.Error = in.status, in.why
	}
}

// keep keeps what an attempt has left.
func (m *machine) keep(n *node, in *ended) {
	n.tried = false
	if in.refused { // nothing was done
		return
	}
	n.spent = Usage{}
	if n.asked == steerRequeue { // the task begins anew, with its whole budget
		n.paid.add(in.usage)
	} else {
		n.usage.add(in.usage)
	}
	m.usage.add(in.usage)
	a := in.left
	if a == nil {
		a = &report{}
	}
	done := Attempt{
		Number: n.number, Status: in.status, Mode: a.how, Session: a.Session,
		Started: a.started, Ended: m.now, Usage: in.usage, Class: classOf(a.err), Note: a.note,
	}
	if a.err != nil {
		done.Error = a.err.Error()
	}
	if a.decided == "" {
		n.tries, n.tried = append(n.tries, done), true
	}
	n.report, n.remains, n.space, n.partial = a, a.remains, a.place, partial{}
	n.orphan = n.orphan && !a.adopted
	if in.turns > 0 && in.session != "" {
		n.partial = partial{Text: a.Text, Structured: a.Structured, ToolCalls: a.ToolCalls}
	}
}

// verdict is the status of a task that ends with its attempt, which is kept already; "" if
// the task continues, or another program decides.
func (m *machine) verdict(now time.Time, in *ended) Status {
	n := m.nodes[in.id]
	switch {
	case n.foreign != nil || n.asked != steerNone:
		return ""
	case in.status == Interrupted || in.refused || in.lost || in.asks || in.stops != "":
		return ""
	case in.status == Accepted || !in.retry && !in.poisoned:
		return in.status
	}
	attempts := n.attempts
	if !in.free {
		attempts++
	}
	switch {
	case n.budget.exceeded(n.usage) != "":
		return OverBudget
	case in.fault != ofTask && m.rules.patience > 0:
		if m.blames(now, n, in) {
			return in.status
		}
		return ""
	case attempts >= m.rules.attempts, m.rules.equal > 0 && n.failures(in) >= m.rules.equal:
		return in.status
	case n.counted() >= m.rules.starts:
		return Quarantined
	}
	return ""
}

// end decides how a task continues after an attempt. verdict is the status that the queue
// has agreed to; "": it was not asked.
func (m *machine) end(now time.Time, in ended, verdict Status, out []effect) []effect {
	n := m.nodes[in.id]
	if verdict == "" {
		verdict = m.verdict(now, &in)
	}
	m.outages.ends(n.id)
	if in.provesMachine() {
		m.outages.works(ofMachine, n.id, n.since)
	}
	n.deaths, n.spared = 0, false
	spent := in.stops == StopUsageLimit && m.park(now, &in)
	f := in.status.Family()
	m.account.End(now, n.id, f == familySuccess || f == familyAgent)
	m.leave(n)
	if limit := m.rules.budget.reached(m.usage, 0.8); limit != "" && !m.warned {
		m.warned = true
		out = append(out, warnBudget{limit})
	}
	if n.foreign != nil {
		n.asked = steerNone
		return m.close(n, n.foreign.Status, "", true, out)
	}
	if in.refused || in.lost {
		if out, over := m.yield(now, n, &in, out); over {
			return out
		}
	}
	if n.asked != steerNone {
		n.due = now
		return m.obey(n, out)
	}
	if verdict != "" {
		return m.close(n, verdict, "", true, out)
	}
	if in.fault != ofTask && in.status != Interrupted && m.rules.patience > 0 {
		return m.suffer(now, n, &in, out)
	}
	m.remember(n, &in)
	n.troubled = time.Time{}
	if in.asks {
		if !n.asking() { // it was decided meanwhile
			return m.enqueue(n, append(out, m.again(n, now, false)))
		}
		n.state = nodeAsks
		return append(out, m.again(n, time.Time{}, false))
	}
	if spent {
		n.state = nodeRests
		n.due, _ = m.account.Parked()
		heap.Push(&m.rest, n)
		return append(out, m.again(n, n.due, false))
	}
	if in.stops != "" {
		m.stop(Stop{Reason: in.stops, Detail: in.why})
	}
	if in.status == Interrupted || in.stops != "" {
		n.state = nodeWithout
		return append(out, m.again(n, time.Time{}, false))
	}
	if !in.free {
		n.attempts++
	}
	n.state, n.due = nodeRests, now.Add(max(in.after, m.rules.backoff.Delay(max(n.attempts, 1), m.rules.rand)))
	heap.Push(&m.rest, n)
	return append(out, m.again(n, n.due, !in.free))
}

// again says that the attempt was not the last one of its task.
func (m *machine) again(n *node, due time.Time, counts bool) again {
	e := again{id: n.id, due: due, counts: counts, number: n.number}
	e.record = &attemptRecord{
		Counts: counts, Free: n.spared, Next: n.next.mode, Session: n.next.session, Turns: n.next.turns, Why: n.next.why, Space: n.space, Fence: n.ran,
	}
	if n.tried { // else the last one is of an earlier start, and the journal has it
		e.record.Attempt = n.tries[len(n.tries)-1]
		e.told = !due.IsZero()
	}
	return e
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
func (m *machine) remember(n *node, in *ended) {
	n.equal, n.last = n.failures(in), in.why
	n.next = launch{mode: modeFresh, why: in.why}
	switch {
	case n.clean && in.status != Interrupted || in.space == "":
	case in.poisoned || in.session == "":
		n.next.mode, n.next.space = modeAgain, in.space
	default:
		n.next.mode, n.next.space, n.next.session, n.next.turns = modeResume, in.space, in.session, in.turns
	}
	if n.next.mode != modeResume {
		n.jots.kept = ""
	}
}
