package fleet

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/fleet/queue"
	"github.com/agent-troupe/troupe/internal/kernel"
)

// tenure is a lease of the queue.
type tenure struct {
	queue.Lease
	sent   time.Time // when the request was, that it was granted or extended by
	asked  bool      // for more time, without an answer yet
	armed  int       // times that its timers were set
	starts int       // of the task, by all programs
}

// jotting is what becomes of the notes of a task. One is under way at a time, so that no older one
// comes after a newer one.
type jotting struct {
	session, agent string
	turns          int
	kept, unkept   string
	running        bool // as the last note says
	under          bool // way
	again          bool // there is more to note
	first, then    []*kernel.Promise[struct{}]
}

// Notes about notes, and their answers.
type (
	// inherits asks how the task stands that the program has leased.
	inherits struct {
		id     string
		number int
		reply  *kernel.Promise[inheritance]
	}
	inheritance struct {
		quarantined string    // why it must not start; "": it may
		from        *TaskNote // of the program whose session and workspace the attempt continues, if it does
		anew        string    // why not
		used        Usage
		usd         float64
	}
	// jots: the queue is to have a note.
	jots struct {
		id        string
		number    int
		begins    bool // the agent is about to start
		continues bool // with a session and its workspace
		session   string
		agent     string
		turns     int
		kept      string // "": nothing newer is
		unkept    string
		reply     *kernel.Promise[struct{}] // nil if no caller waits
	}
	// jotted is what the queue has said.
	jotted struct {
		id    string
		lease queue.Lease
		usage Usage
		lost  bool
		err   error
	}
)

// seen is the last note of another program.
type seen struct {
	ticket string
	left   TaskNote
	free   bool // no program has the task
}

// jot gives the queue a note.
type jot struct {
	id    string
	lease queue.Lease
	note  TaskNote
}

func (jot) isEffect() {}

// inherit takes what other programs have noted about a task that this one has leased. Its start
// is counted already.
func (m *machine) inherit(n *node) {
	t := n.tenure
	var left TaskNote
	if len(t.Note) == 0 || json.Unmarshal(t.Note, &left) != nil {
		return
	}
	m.learn(n, &left, true)
	n.jots.kept, n.jots.unkept = left.Kept, left.Unkept
	free := left.Free
	if left.Running {
		free++ // as the end of a host
	}
	n.before = max(t.Starts-free-(n.counted()-1-n.before), 0)
	for _, id := range left.Used {
		if n.find(id) == nil {
			n.calls = append(n.calls, &call{Approval: Approval{ID: id, Task: n.id}, state: askUsed})
		}
	}
}

// learn takes a note. ended: no attempt of that program runs any more.
func (m *machine) learn(n *node, left *TaskNote, ended bool) {
	m.learnUsage(n, left.Usage)
	n.left = *left
	n.deaths, n.alone = left.Deaths, left.Alone
	if ended && left.Running {
		n.deaths++
	}
}

// learnUsage takes what all programs have used for a task, as the queue has it.
func (m *machine) learnUsage(n *node, all Usage) {
	more := all.beyond(n.noted)
	n.usage.add(more)
	m.usage.add(more)
	n.noted.add(more)
}

// beyond is by how much each part of u is above that of o.
func (u Usage) beyond(o Usage) Usage {
	return Usage{
		USD: max(u.USD-o.USD, 0), Credits: max(u.Credits-o.Credits, 0), Turns: max(u.Turns-o.Turns, 0), Wall: max(u.Wall-o.Wall, 0),
		Tokens: Tokens{
			Input: max(u.Tokens.Input-o.Tokens.Input, 0), Output: max(u.Tokens.Output-o.Tokens.Output, 0),
			CacheWrite: max(u.Tokens.CacheWrite-o.Tokens.CacheWrite, 0), CacheRead: max(u.Tokens.CacheRead-o.Tokens.CacheRead, 0),
		},
	}
}

func (in seen) step(m *machine, out []effect) []effect {
	n := m.named(in.ticket)
	if n == nil {
		m.keepsNote(in)
		return out
	}
	if n.tenure != nil && n.tenure.Task == in.ticket || n.state == nodeOver || in.left.Worker == m.rules.worker && !in.free {
		return out
	}
	was := n.suspect()
	m.learn(n, &in.left, in.free)
	if i := slices.Index(m.ready, n); i >= 0 && n.suspect() != was {
		m.unqueue(n)
		m.push(n)
	}
	return out
}

// keepsNote keeps the note of a ticket whose decision has not come yet: a program that comes to a job has all tasks
// before the decisions about them, and one that waits for a person notes nothing more.
func (m *machine) keepsNote(in seen) {
	id, number := splitTicket(in.ticket)
	n := m.nodes[id]
	if n == nil || number < n.requeued {
		return
	}
	if n.early != nil {
		if _, kept := splitTicket(n.early.ticket); kept > number {
			return
		}
	}
	n.early = &in
}

// noteOf is what the queue is to know of a task that this program has.
func (m *machine) noteOf(n *node) TaskNote {
	note := TaskNote{
		Worker: m.rules.worker, Host: m.rules.host, Agent: n.jots.agent, Session: n.jots.session, Turns: n.jots.turns, Usage: n.usage,
		Kept: n.jots.kept, Unkept: n.jots.unkept,
		Running: n.jots.running, Alone: n.jots.running && len(m.running) == 1, Deaths: n.deaths, Free: max(n.tenure.starts-n.counted(), 0),
	}
	if n.state == nodeRuns {
		note.Usage.add(n.spent)
	}
	for _, c := range n.calls {
		switch {
		case c.state == askWaits && !c.hidden:
			note.Approvals = append(note.Approvals, c.Approval)
		case c.state == askUsed:
			note.Used = append(note.Used, c.ID)
		}
	}
	return note
}

// jot notes how a task stands, after the note that is under way.
func (m *machine) jot(n *node, out []effect) []effect {
	j := &n.jots
	if n.tenure == nil {
		return out
	}
	if j.under {
		j.again = true
		return out
	}
	j.under, j.again = true, false
	j.first, j.then = j.then, nil
	l := n.tenure.Lease
	l.Starts, l.Note = n.tenure.starts, nil
	return append(out, jot{n.id, l, m.noteOf(n)})
}

// rests notes that no attempt of a task runs, if the queue knows of one.
func (m *machine) rests(n *node, out []effect) []effect {
	if n.tenure == nil || !n.jots.running || n.state == nodeRuns || n.state == nodeClaims || n.state == nodeWithout {
		return out // the last ones say so when they give the lease back
	}
	n.jots.running = false
	return m.jot(n, out)
}

func (in inherits) note(m *machine, _ time.Time, out []effect) []effect {
	var i inheritance
	if n := m.nodes[in.id]; n.is(in.number) {
		i = inheritance{quarantined: m.quarantines(n, n.counted()-1), used: n.usage, usd: m.leavesUSD(n), from: m.inherited(n), anew: m.anew(n)}
	}
	return reply(out, in.reply, i)
}

func (in jots) note(m *machine, _ time.Time, out []effect) []effect {
	n := m.nodes[in.id]
	if !n.is(in.number) || n.tenure == nil {
		return refuse(out, in.reply)
	}
	j := &n.jots
	if j.session, j.turns = in.session, in.turns; in.begins {
		n.tenure.starts++
		j.agent, j.running = in.agent, true
		if n.ran = n.tenure.Fence; !in.continues {
			j.kept = "" // of a session that ends
		}
	}
	if in.kept != "" {
		j.kept = in.kept
	}
	j.unkept = in.unkept
	if in.reply != nil {
		j.then = append(j.then, in.reply)
	}
	return m.jot(n, out)
}

// jotted lets those continue who wait for the note, and notes what has happened meanwhile.
func (in jotted) note(m *machine, now time.Time, out []effect) []effect {
	m.now = now
	n := m.nodes[in.id]
	j := &n.jots
	waited := j.first
	j.under, j.first = false, nil
	held := n.holds(in.lease.Fence)
	if held && in.err == nil {
		if in.lease.Task == n.ticket() { // else the task begins anew, and has used nothing
			n.noted = in.usage
		}
		for _, to := range waited {
			out = append(out, replied[struct{}]{to: to})
		}
	} else {
		if held || n.tenure == nil { // else a later lease is there, whose notes wait for this answer
			waited, j.then = append(waited, j.then...), nil
		}
		for _, to := range waited {
			out = append(out, replied[struct{}]{to: to, err: joined(queue.ErrLeaseLost, in.err)})
		}
	}
	if held && in.lost {
		return m.lose(in.id, in.lease.Fence, out)
	}
	if j.again || len(j.then) > 0 {
		return m.jot(n, out)
	}
	return out
}

func refuse(out []effect, to *kernel.Promise[struct{}]) []effect {
	if to == nil {
		return out
	}
	return append(out, replied[struct{}]{to: to, err: queue.ErrLeaseLost})
}
