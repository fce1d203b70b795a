package fleet

import (
	"container/heap"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
)

// reservation is until when a task is left to the program that has a session of it.
type reservation struct {
	session string
	until   time.Time
}

// reserves asks for how long a task that the queue has just given to this program is left to another
// one; 0: it is not.
type reserves struct {
	id, session string
	reply       *kernel.Promise[time.Duration]
}

func (in reserves) note(m *machine, now time.Time, out []effect) []effect {
	m.now = now
	wait := time.Duration(0)
	if n := m.nodes[in.id]; n != nil {
		wait = max(m.reserved(n, in.session).Sub(now), 0)
	}
	return reply(out, in.reply, wait)
}

// reserved is until when a task that is free is left to the program that has the session. It counts from
// when this program has first heard that the task is free.
func (m *machine) reserved(n *node, session string) time.Time {
	own := session == n.next.session || slices.ContainsFunc(n.tries, func(a Attempt) bool { return a.Session == session })
	if m.rules.affinity <= 0 || session == "" || own {
		return m.now
	}
	if n.reservation.session != session {
		n.reservation = reservation{session, m.now.Add(m.rules.affinity)}
	}
	return later(m.now, n.reservation.until)
}

// freed lets a task start that another program has given back, or lost.
func (in freed) step(m *machine, out []effect) []effect {
	n := m.named(in.ticket)
	if n == nil {
		return out
	}
	at := m.reserved(n, n.left.sticky())
	waits := at.After(m.now)
	n.elsewhere = time.Time{}
	n.freed = n.state == nodeRuns && n.tenure == nil
	switch {
	case n.state == nodeWaits && waits:
		n.elsewhere = at
	case n.state == nodeReady && waits, n.state == nodeRests && n.away && n.due.After(m.now):
		m.unqueue(n)
		n.state, n.due, n.away = nodeRests, at, true
		heap.Push(&m.rest, n)
	}
	return out
}
