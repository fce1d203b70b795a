package fleet

import (
	"container/heap"
	"time"
)

// pollLease is how long a task rests that another program has, if the queue does not say
// until when.
const pollLease = time.Minute

// named is the task of a ticket that is valid, or nil.
func (m *machine) named(ticket string) *node {
	id, requeued := splitTicket(ticket)
	if n := m.nodes[id]; n != nil && n.requeued == requeued {
		return n
	}
	return nil
}

// leased takes the lease of an attempt that is about to start.
func (in leased) step(m *machine, out []effect) []effect {
	n := m.nodes[in.id]
	if n.is(in.number) {
		n.tenure = &tenure{Lease: in.lease, sent: in.sent, starts: in.lease.Starts}
		n.jots = jotting{under: n.jots.under}
		m.inherit(n)
		m.single = n.suspect()
		out = m.admit(n, n.arm(out, in.sent))
		if m.quarantines(n, n.counted()-1) != "" {
			return append(out, answered{to: in.reply})
		}
		out = append(out, tell{Event{Kind: EventStarted, Task: n.id, Attempt: n.number, Detail: string(m.begins(n))}})
	}
	return append(out, answered{to: in.reply})
}

// arm has the lease extended after a third of its time, but not before from. After seven
// eighths of it the lease counts as lost, whatever the queue is doing, so that the agent is
// dead when another program gets the task. The time counts from when the request was sent:
// no clock but this program's own is read.
func (n *node) arm(out []effect, from time.Time) []effect {
	t := n.tenure
	if t.TTL <= 0 {
		return out
	}
	t.armed++
	return append(out, arm{id: n.id, fence: t.Fence, number: t.armed, extend: later(t.sent.Add(t.TTL/3), from), deadline: t.sent.Add(t.TTL * 7 / 8)})
}

func (n *node) holds(fence uint64) bool {
	return n != nil && n.tenure != nil && n.tenure.Fence == fence
}

// extended takes the answers of the queue. Without one the deadline decides.
func (in extended) note(m *machine, now time.Time, out []effect) []effect {
	m.now = now
	for _, e := range in.each {
		out = m.extended(e, in.sent, out)
	}
	return out
}

func (m *machine) extended(in extension, sent time.Time, out []effect) []effect {
	n := m.nodes[in.id]
	held := n.holds(in.lease.Fence)
	if held {
		n.tenure.asked = false
	}
	switch {
	case held && in.lost:
		return m.lose(in.id, in.lease.Fence, out)
	case held && in.err == nil:
		n.tenure.sent = sent
		return n.arm(out, sent)
	case held:
		return n.arm(out, m.now.Add(n.tenure.TTL/8))
	case in.lost || in.err != nil:
		return out
	case n != nil && n.state == nodeRuns && n.lost: // its processes are being killed
		n.late = &in.lease
		return out
	}
	// No attempt needs it any more, and no program would get the task until it runs out again. If
	// the task is over the queue refuses this.
	return append(out, release{in.lease})
}

// lose ends an attempt whose lease is lost: its processes are killed before anything else.
// While the queue is asked about the result, its answer decides.
func (m *machine) lose(id string, fence uint64, out []effect) []effect {
	n := m.nodes[id]
	if !n.holds(fence) || n.state == nodeClaims {
		return out
	}
	return n.forget(out)
}

// forget lets go of a lease, and kills what runs under it.
func (n *node) forget(out []effect) []effect {
	if n.tenure != nil {
		n.tenure = nil
		out = append(out, disarm{n.id})
	}
	if n.state == nodeRuns {
		n.lost = true
		out = append(out, kill{n.id})
	}
	return out
}

// claim asks the queue about the result of a task, before the task is over. If it ends with
// an attempt, it keeps its place, its key and its lease until the answer.
func (m *machine) claim(n *node, e ending, out []effect) []effect {
	n.state = nodeClaims
	m.claiming++
	e.result = m.made(n, e.status, e.why)
	c := claim{id: n.id, number: n.number, ticket: n.ticket(), hash: n.hash, offer: n.requeued > 0, result: e.result}
	if n.tenure != nil {
		c.lease = &n.tenure.Lease
		e.fence, e.result.Fence = n.tenure.Fence, n.tenure.Fence
	}
	n.ending = &e
	return append(out, c)
}

// claimed ends the task, or the attempt: then its result is void. A task that is over without
// an attempt, or by a person, is over here even if the queue does not take its result.
func (in claimed) step(m *machine, out []effect) []effect {
	n := m.nodes[in.id]
	if n == nil || n.ending == nil {
		return out
	}
	end, decisions := n.ending, n.later
	n.later = nil
	m.claiming--
	if n.tenure != nil {
		n.tenure = nil
		out = append(out, disarm{n.id})
	}
	n.state = nodeReady
	if end.ran {
		n.state = nodeRuns
	}
	switch {
	case in.err != nil:
		n.ending, n.doubtful = nil, end.fence
		if !end.ran {
			n.state = nodeWithout
			break
		}
		cut := &end.ended
		cut.status, cut.why, cut.retry, cut.stops = Interrupted, in.err.Error(), false, ""
		if n.tried {
			last := &n.tries[len(n.tries)-1]
			last.Status, last.Error = cut.status, cut.why
		}
		out = m.end(m.now, *cut, "", out)
	case in.lost && end.ran:
		n.ending = nil
		n.loses(&end.ended)
		out = m.end(m.now, end.ended, "", out)
	case end.ran:
		n.foreign = nil
		out = m.end(m.now, end.ended, end.status, out)
	case in.lost && n.foreign != nil: // so that all programs say the same
		n.ending = nil
		out = m.close(n, n.foreign.Status, "", true, out)
	case in.lost && end.status != Skipped: // another program has the task: it ends it, or gives it back
		n.ending, n.state, n.due, n.away = nil, nodeRests, m.now.Add(pollLease), true
		n.sentence = &sentence{end.status, end.why}
		heap.Push(&m.rest, n)
	default:
		n.foreign = nil
		out = m.close(n, end.status, end.why, true, out)
	}
	for _, s := range decisions {
		out = s.step(m, out)
	}
	return out
}

// yield rests a task that another program has. A start that was refused has not been one.
// over is false if a person has decided about the task meanwhile.
func (m *machine) yield(now time.Time, n *node, in *ended, out []effect) (_ []effect, over bool) {
	if in.refused {
		n.starts--
		n.base = min(n.base, n.starts) // it was requeued meanwhile
	}
	switch {
	case n.asked != steerNone:
		return out, false
	case m.stopped != nil:
		n.state = nodeWithout
	default:
		n.state, n.due, n.away = nodeRests, now.Add(max(in.after, m.rules.backoff.Delay(1, m.rules.rand))), true
		if n.freed { // after it was refused
			n.due = m.reserved(n, n.left.sticky())
		}
		m.restUntilDue(n)
	}
	if in.refused {
		return out, true
	}
	m.remember(n, in)
	due := n.due
	if n.state == nodeWithout {
		due = time.Time{}
	}
	return append(out, m.again(n, due, false)), true
}

// taken rests a task that another program has, without a call of the queue, until it is free
// or over.
func (in taken) step(m *machine, out []effect) []effect {
	n := m.named(in.ticket)
	if n == nil || in.worker == m.rules.worker {
		return out
	}
	n.freed = false
	switch n.state {
	case nodeWaits:
		n.elsewhere = m.now.Add(pollLease)
	case nodeReady:
		m.unqueue(n)
		n.state, n.due, n.away = nodeRests, m.now.Add(pollLease), true
		heap.Push(&m.rest, n)
	case nodeRests:
		if !n.away || n.due.After(m.now.Add(time.Second)) {
			return out // its backoff, or what the queue has said
		}
		m.unqueue(n)
		n.due = m.now.Add(pollLease)
		heap.Push(&m.rest, n)
	}
	return out
}

// knows reports whether a result of the queue is new. One of another program that comes while
// this one offers its own is news; the echo of the own is not.
func (m *machine) knows(ticket, worker string, fence uint64) bool {
	n := m.named(ticket)
	if n == nil {
		return m.before(ticket) == nil
	}
	if n.state == nodeOver || n.foreign != nil { // a result of a task that is not over is void
		return true
	}
	return n.doubtful != 0 && n.doubtful == fence || n.ending != nil && (n.ending.fence == fence || !n.ending.ran && worker == m.rules.worker)
}

// before is the task of a ticket that it will have once a decision has come; or nil.
func (m *machine) before(ticket string) *node {
	id, requeued := splitTicket(ticket)
	if n := m.nodes[id]; n != nil && requeued > n.requeued && (n.ahead == nil || n.ahead.number < requeued) {
		return n
	}
	return nil
}

// finishedElsewhere ends a task with the result of another program.
func (in foreign) step(m *machine, out []effect) []effect {
	if n := m.before(in.ticket); n != nil {
		_, number := splitTicket(in.ticket)
		n.ahead = &ahead{number, in.result}
		return out
	}
	if m.knows(in.ticket, in.result.Worker, in.result.Fence) {
		return out
	}
	n := m.named(in.ticket)
	n.foreign = in.result
	m.learnUsage(n, in.result.Usage.beyond(n.paid))
	switch n.state {
	case nodeClaims: // the queue will not take the own one
		return out
	case nodeRuns:
		return n.forget(out)
	}
	m.unqueue(n)
	out = n.forget(out)
	return m.close(n, in.result.Status, "", true, out)
}
