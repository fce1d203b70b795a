package fleet

import (
	"container/heap"
	"fmt"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/base/shown"
)

// readyQueue has the tasks that may start: by priority, then in order. Those that two hosts
// in a row died with come last, as they start alone.
type readyQueue []*node

func (q readyQueue) Len() int { return len(q) }
func (q readyQueue) Less(i, j int) bool {
	switch x, y := q[i], q[j]; {
	case x.suspect() != y.suspect():
		return y.suspect()
	case x.priority != y.priority:
		return x.priority > y.priority
	default:
		return x.order < y.order
	}
}
func (q readyQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *readyQueue) Push(x any)   { *q = append(*q, x.(*node)) } //nolint:forcetypeassert // only nodes
func (q *readyQueue) Pop() any     { return pop((*[]*node)(q)) }

// restQueue has the tasks that are not due, by the time when they are.
type restQueue []*node

func (q restQueue) Len() int { return len(q) }
func (q restQueue) Less(i, j int) bool {
	if !q[i].due.Equal(q[j].due) {
		return q[i].due.Before(q[j].due)
	}
	return q[i].order < q[j].order
}
func (q restQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *restQueue) Push(x any)   { *q = append(*q, x.(*node)) } //nolint:forcetypeassert // only nodes
func (q *restQueue) Pop() any     { return pop((*[]*node)(q)) }

func pop(q *[]*node) *node {
	last := len(*q) - 1
	n := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return n
}

// take takes a task out of the queue of those that may start.
func (m *machine) take(n *node) { heap.Remove(&m.ready, slices.Index(m.ready, n)) }

// restUntilDue takes a task out of the way until its time.
func (m *machine) restUntilDue(n *node) { heap.Push(&m.rest, n) }

// first is the task that starts next. While something has failed that all need, it is the one
// that has failed least often.
func (m *machine) first() *node {
	best := m.ready[0]
	if !m.outages.held() {
		return best
	}
	least := m.outages.failures(best.id)
	for _, n := range m.ready[1:] {
		if f := m.outages.failures(n.id); f < least && n.suspect() == best.suspect() {
			best, least = n, f
		}
	}
	return best
}

// lets reports whether nothing but the account keeps a task from its start.
func (m *machine) lets(now time.Time, n *node) bool {
	return m.outages.lets(now) && (len(m.running) == 0 || m.rules.deferred || !n.suspect() && !m.single)
}

// suspects is how many hosts in a row have to die while a task runs until it runs alone.
const suspects = 2

// suspect reports whether the task may be what hosts die of.
func (n *node) suspect() bool { return n.deaths >= suspects }

// counted is how many starts of a task count since it was requeued.
func (n *node) counted() int { return n.starts - n.base - n.free + n.before }

// push puts a task among those that may start.
func (m *machine) push(n *node) { heap.Push(&m.ready, n) }

// quarantines says why a task must not start any more after so many starts; "": it may.
func (m *machine) quarantines(n *node, counted int) string {
	switch {
	case counted >= m.rules.starts:
		return fmt.Sprintf("it was started %s without an end", shown.Count(counted, "time"))
	case n.deaths >= m.rules.starts && n.alone && !m.rules.deferred:
		return fmt.Sprintf("the host died %s in a row while it ran, the last time while it ran alone", shown.Count(n.deaths, "time"))
	}
	return ""
}
