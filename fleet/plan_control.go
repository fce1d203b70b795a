package fleet

import (
	"container/heap"
	"errors"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
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

// steer is what somebody decides about a task.
type steer int8

const (
	steerNone steer = iota
	steerCancel
	steerRequeue
)

type (
	// paused: start nothing, or go on.
	paused struct{ on bool }
	// steered: somebody decides about a task.
	steered struct {
		id    string
		what  steer
		reply *kernel.Promise[struct{}]
	}
)

// approved: a person has decided about a call of the task.
type approved struct{ id string }

func (paused) isInput()   {}
func (approved) isInput() {}
func (steered) isInput()  {}

type (
	// canceling: an attempt is under way, and its task is to be canceled.
	canceling struct{ id string }
	// requeued: the task begins anew. Its result is void, and the attempt that is under way
	// ends.
	requeued struct {
		id   string
		runs bool
	}
	// answered: the decision is taken.
	answered struct {
		to  *kernel.Promise[struct{}]
		err error
	}
	// pausing: the job pauses, or goes on.
	pausing struct{ on bool }
)

func (canceling) isEffect() {}
func (requeued) isEffect()  {}
func (answered) isEffect()  {}
func (pausing) isEffect()   {}

// whyCanceled is the error of a task that was canceled.
const whyCanceled = "it was canceled by hand"

func (p *plan) pause(on bool, out []effect) []effect {
	if p.paused == on {
		return out
	}
	p.paused = on
	return append(out, pausing{on})
}

// approve lets a task go on whose call was decided. Several may wait: the next attempt
// asks again about those that still do.
func (p *plan) approve(id string, out []effect) []effect {
	if n := p.nodes[id]; n != nil && n.state == nodeAsks {
		out = p.enqueue(n, out)
	}
	return out
}

func (p *plan) steer(in steered, out []effect) []effect {
	n := p.nodes[in.id]
	var err error
	switch {
	case n == nil:
		err = ErrNoTask
	case n.state == nodeClaims:
		n.later = append(n.later, in)
		return out
	case in.what == steerRequeue:
		out = p.requeue(n, out)
	case n.state == nodeRuns:
		if n.asked != steerCancel {
			n.asked = steerCancel
			out = append(out, canceling{n.id})
		}
	case n.state != nodeOver:
		p.unqueue(n)
		out = p.close(n, Canceled, whyCanceled, true, out)
	case n.status != Canceled:
		err = ErrTaskOver
	}
	return append(out, answered{in.reply, err})
}

// requeue lets a task begin anew. One that was never started is in the queue already.
func (p *plan) requeue(n *node, out []effect) []effect {
	switch {
	case n.state == nodeOver:
		from := len(out)
		out = p.reopen(n, out)
		for _, e := range out[from:] {
			if r, ok := e.(requeued); ok && p.nodes[r.id].state == nodeWaits {
				out = p.enqueue(p.nodes[r.id], out)
			}
		}
	case n.state == nodeRuns:
		n.asked = steerRequeue
		n.reset()
		out = append(out, requeued{n.id, true})
	case n.begun():
		p.unqueue(n)
		n.reset()
		out = p.enqueue(n, append(out, requeued{id: n.id}))
	}
	return out
}

// obey ends an attempt about whose task somebody has decided. Whatever the attempt came
// to is void: the decision is in the journal already.
func (p *plan) obey(n *node, in *ended, out []effect) []effect {
	what := n.asked
	n.asked = steerNone
	if what == steerCancel {
		return p.close(n, Canceled, whyCanceled, true, out)
	}
	n.next = launch{mode: modeFresh}
	return p.enqueue(n, append(out, again{id: in.id, due: n.due}))
}

// reset makes a task what it was before its first start, but for the number of its starts,
// which names its files.
func (n *node) reset() {
	n.base, n.attempts, n.equal, n.last, n.usage, n.next, n.asks = n.starts, 0, 0, "", Usage{}, launch{mode: modeFresh}, false
	n.free, n.deaths, n.troubled = 0, 0, time.Time{}
}

// reopen takes back the result of a task, and those of the tasks that were skipped because
// of it. What comes after it and has not begun waits for it again.
func (p *plan) reopen(n *node, out []effect) []effect {
	p.over--
	p.waiting++
	if n.counts() {
		p.failed--
	}
	n.reset()
	n.state, n.status = nodeWaits, ""
	out = append(out, requeued{id: n.id})
	for _, d := range n.dependents {
		d.waits++
		switch {
		case d.begun():
		case d.state == nodeOver && d.status == Skipped:
			out = p.reopen(d, out)
		case d.state == nodeReady || d.state == nodeRests:
			p.unqueue(d)
			d.state = nodeWaits
		}
	}
	return out
}

// unqueue takes a task that does not run out of its queue.
func (p *plan) unqueue(n *node) {
	if i := slices.Index(p.ready, n); i >= 0 {
		heap.Remove(&p.ready, i)
	}
	if i := slices.Index(p.rest, n); i >= 0 {
		heap.Remove(&p.rest, i)
	}
	if n.exclusive != "" {
		p.held[n.exclusive] = slices.DeleteFunc(p.held[n.exclusive], func(o *node) bool { return o == n })
	}
}

// counts reports whether a task that is over has failed, for Job.FailOn.
func (n *node) counts() bool {
	f := n.status.Family()
	return f != familySuccess && f != familyNotRun
}
