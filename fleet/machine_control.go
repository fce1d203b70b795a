package fleet

import (
	"container/heap"
	"errors"
	"slices"
)

// Errors of the methods of [Handle] that decide about a task, and of [Amend]. Match them
// with errors.Is.
var (
	// ErrNoTask says that the job has no task with the id.
	ErrNoTask = errors.New("the job has no task with this id")
	// ErrTaskOver says that the task has its result already.
	ErrTaskOver = errors.New("the task has its result already; requeue it to run it again")
	// ErrJobOver says that the job has ended.
	ErrJobOver = errors.New("the job has ended")
)

// steer is a person's decision about a task.
type steer int8

const (
	steerNone steer = iota
	steerCancel
	steerRequeue
)

// whyCanceled is the error of a task that was canceled.
const whyCanceled = "it was canceled by hand"

func (in paused) step(m *machine, out []effect) []effect {
	if m.paused == in.on {
		return out
	}
	m.paused = in.on
	return append(out, pausing(in))
}

// mayStart reports whether attempts may start at all. A program that shares a job first learns
// what the others have done and what was decided.
func (m *machine) mayStart() bool {
	return m.stopped == nil && !m.paused && !m.haltsAll && m.rules.share != ShareSubmit && (m.current || !m.shared())
}

func (in steered) step(m *machine, out []effect) []effect {
	n := m.nodes[in.id]
	var err error
	switch {
	case n == nil:
		err = ErrNoTask
	case n.state == nodeClaims:
		n.later = append(n.later, in)
		return out
	case m.shared() && !in.ordered && in.reply == nil && (n.state != nodeOver || n.status != Skipped):
		return out // it was requeued meanwhile
	case m.shared() && !in.ordered:
		if in.what == steerRequeue || n.state != nodeOver {
			op := opCancel
			if in.what == steerRequeue {
				op = opRequeue
			}
			return m.decides(op, n, in.reply, out)
		}
		if n.status != Canceled {
			err = ErrTaskOver
		}
	case in.what == steerRequeue && in.ordered:
		out = m.requeueTo(n, in.number, m.admit(n, out))
	case in.what == steerRequeue:
		out = m.requeue(n, out)
	case n.state == nodeRuns:
		if n.asked != steerCancel {
			n.asked = steerCancel
			out = append(out, canceling{n.id})
		}
	case n.state != nodeOver:
		m.unqueue(n)
		out = m.admit(n, out)
		if out = m.close(n, Canceled, whyCanceled, true, out); n.state == nodeClaims { // its result follows
			out = append(out, canceling{n.id})
		}
	case n.status != Canceled:
		err = ErrTaskOver
	}
	return append(out, answered{in.reply, err})
}

// requeueTo lets a task of a shared job begin anew, under another ticket. All programs do so,
// where the task stands there.
func (m *machine) requeueTo(n *node, number int, out []effect) []effect {
	if n.requeued >= number {
		return out
	}
	if n.tenure != nil && n.state != nodeRuns {
		out = append(out, disarm{n.id}, release{n.tenure.Lease})
		n.tenure = nil
	}
	from := len(out)
	if n.requeued = number; n.result != nil || n.unkept != nil { // requeue counts it
		n.requeued--
	}
	switch {
	case n.state == nodeOver, n.state == nodeRuns, n.begun():
		out = m.requeue(n, out)
	default: // it did not begin here: what others have noted is of another ticket
		n.reset()
		out = append(out, requeued{id: n.id})
	}
	n.requeued = number
	for i, e := range out[from:] {
		if r, ok := e.(requeued); ok && r.id == n.id {
			r.number = number
			out[from+i] = r
		}
	}
	if early := n.early; early != nil && m.named(early.ticket) == n {
		n.early = nil
		out = early.step(m, out)
	}
	if n.ahead != nil && n.ahead.number == number { // it is over already
		result := n.ahead.result
		n.ahead = nil
		out = foreign{n.ticket(), result}.step(m, out)
	}
	return out
}

// requeue lets a task begin anew. One that was never started is in the queue already.
func (m *machine) requeue(n *node, out []effect) []effect {
	switch {
	case n.state == nodeOver:
		from := len(out)
		out = m.reopen(n, out)
		for _, e := range out[from:] {
			if r, ok := e.(requeued); ok && m.nodes[r.id].state == nodeWaits {
				out = m.enqueue(m.nodes[r.id], out)
			}
		}
	case n.state == nodeRuns:
		n.asked = steerRequeue
		n.reset()
		out = append(out, requeued{id: n.id, runs: true})
	case n.begun():
		m.unqueue(n)
		n.reset()
		m.withdraw(n)
		out = m.enqueue(n, append(out, requeued{id: n.id}))
	}
	return out
}

// obey ends an attempt after a decision about its task. The outcome of the attempt is
// void: the decision is in the journal already.
func (m *machine) obey(n *node, out []effect) []effect {
	what := n.asked
	n.asked = steerNone
	if what == steerCancel {
		return m.close(n, Canceled, whyCanceled, true, out)
	}
	n.next = launch{mode: modeFresh}
	if n.tenure != nil && m.shared() { // of the ticket that is void
		out = append(out, disarm{n.id}, release{n.tenure.Lease})
		n.tenure = nil
	}
	return m.enqueue(n, append(out, m.again(n, n.due, false)))
}

// reopen takes back the result of a task, and those of the tasks that were skipped because
// of it. Tasks after it that have not begun wait for it again.
func (m *machine) reopen(n *node, out []effect) []effect {
	m.over--
	m.waiting++
	if n.counts() {
		m.failed--
	}
	n.reset()
	m.withdraw(n)
	n.state, n.status = nodeWaits, ""
	out = append(m.admit(n, out), requeued{id: n.id})
	for _, d := range n.dependents {
		d.waits++
		switch {
		case d.begun():
		case d.state == nodeOver && d.status == Skipped && m.shared():
			out = m.decides(opRequeue, d, nil, out)
		case d.state == nodeOver && d.status == Skipped:
			out = m.reopen(d, out)
		case d.state == nodeClaims && d.ending.status == Skipped:
			d.later = append(d.later, steered{id: d.id, what: steerRequeue})
		case d.state == nodeReady || d.state == nodeRests:
			m.unqueue(d)
			d.state = nodeWaits
		}
	}
	return out
}

// unqueue takes a task that does not run out of its queue.
func (m *machine) unqueue(n *node) {
	if i := slices.Index(m.ready, n); i >= 0 {
		heap.Remove(&m.ready, i)
	}
	if i := slices.Index(m.rest, n); i >= 0 {
		heap.Remove(&m.rest, i)
	}
	if n.exclusive != "" {
		m.held[n.exclusive] = slices.DeleteFunc(m.held[n.exclusive], func(o *node) bool { return o == n })
	}
}
