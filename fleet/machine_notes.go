package fleet

import (
	"time"

	"github.com/agent-troupe/troupe/fleet/queue"
	"github.com/agent-troupe/troupe/internal/kernel"
)

// Notes of those who look, and of those who decide.
type (
	progressOf  struct{ reply *kernel.Promise[Progress] }
	approvalsOf struct{ reply *kernel.Promise[[]Approval] }
	resultsOf   struct {
		reply *kernel.Promise[[]*TaskResult]
	}
	closingOf  struct{ reply *kernel.Promise[closing] }
	snapshotOf struct {
		job   string
		kept  bool
		reply *kernel.Promise[Snapshot]
	}
	// pauses: Pause, or Resume, was called.
	pauses struct{ on bool }
	// deciding: a caller is about to decide about a call.
	deciding struct {
		call  string
		reply *kernel.Promise[Approval]
	}
	// repeats: the command after acceptance is to run once more.
	repeats struct {
		id    string
		reply *kernel.Promise[repetition]
	}
	// repetition is what the command runs for.
	repetition struct {
		left     *remains
		requeued int // the number of the result
	}
)

// Notes of attempts, and of what runs after them.
type (
	// doing is what an attempt has begun.
	doing struct {
		id     string
		number int
		what   string
	}
	// opened is the session that an attempt runs in.
	opened struct {
		id      string
		number  int
		session string
	}
	// billed is what an attempt has used so far.
	billed struct {
		id     string
		number int
		spent  Usage
	}
	// affords asks for what the job has spent of its budget; "": there is more.
	affords struct{ reply *kernel.Promise[string] }
	// fanned is what a hook says of subagents, and the answer why a call is denied.
	fanned struct {
		id     string
		number int
		what   fanHook
		call   string
		agent  string
		ok     bool
		reply  *kernel.Promise[string]
	}
	// asks: a call needs a person's word. The approval's ID is the hash of the call.
	asks struct {
		id    string
		call  Approval
		reply *kernel.Promise[asking]
	}
	// shows: the journal has a call that waits for a person.
	shows struct{ id, call string }
	// takes: the answer to a call is used from now on.
	takes struct {
		id, call string
		reply    *kernel.Promise[verdictOn]
	}
	// says is what an agent, or its subagent who, said with calls.
	says struct {
		id        string
		number    int
		who, text string
		uses      []string
	}
	// saidBefore asks what was said before a call.
	saidBefore struct {
		id     string
		number int
		call   string
		reply  *kernel.Promise[string]
	}
	// turned: a turn has ended.
	turned struct {
		id     string
		number int
	}
	// accepting: the command after acceptance is about to begin.
	accepting struct {
		id       string
		requeued int // the number of the result
		reply    *kernel.Promise[acceptance]
	}
	acceptance struct {
		nothing bool // there is no such command for the result
		wanted  bool
	}
)

type fanHook int8

const (
	fanAsks fanHook = iota
	fanBegan
	fanReturned
	fanStopped
	fanTurned
)

// Notes of the carrier, and of leases: they are kept while a batch is carried out.
type (
	// written: the journal has the batch.
	written struct{}
	// unwritten: it could not be written, and so it has not happened.
	unwritten struct{}
	// broken: the job has failed.
	broken struct {
		err  error
		stop Stop
	}
	// due: a lease is to be extended.
	due struct {
		id     string
		fence  uint64
		number int // of the timer
	}
	// lapsed: the deadline of a lease is over.
	lapsed struct {
		id    string
		fence uint64
	}
	// extended is what the queue has said about leases.
	extended struct {
		sent time.Time
		each []extension
	}
	extension struct {
		id    string
		lease queue.Lease
		lost  bool
		err   error
	}
	// knows asks whether a result in the queue is known.
	knows struct {
		ticket, worker string
		fence          uint64
		reply          *kernel.Promise[known]
	}
	// known: the result is old, or only how the task ended is kept.
	known struct{ old, bare bool }
)

func reply[T any](out []effect, to *kernel.Promise[T], value T) []effect {
	return append(out, replied[T]{to: to, value: value})
}

func (n progressOf) note(m *machine, now time.Time, out []effect) []effect {
	return reply(out, n.reply, m.progress(now))
}

func (n approvalsOf) note(m *machine, _ time.Time, out []effect) []effect {
	return reply(out, n.reply, m.approvals())
}

func (n resultsOf) note(m *machine, _ time.Time, out []effect) []effect {
	return reply(out, n.reply, m.results())
}

func (n closingOf) note(m *machine, now time.Time, out []effect) []effect {
	return reply(out, n.reply, m.closing(now))
}

func (n snapshotOf) note(m *machine, now time.Time, out []effect) []effect {
	return reply(out, n.reply, m.snapshot(now, n.job, n.kept))
}

func (n pauses) note(m *machine, _ time.Time, out []effect) []effect {
	m.pausing = n.on
	return out
}

func (n deciding) note(m *machine, _ time.Time, out []effect) []effect {
	for _, t := range m.order {
		if c := t.find(n.call); c != nil && c.state == askWaits && !c.hidden && !c.taken && t.result == nil && !m.final {
			c.taken = true
			return reply(out, n.reply, c.Approval)
		}
	}
	return append(out, replied[Approval]{to: n.reply, err: m.refusal(n.call)})
}

func (n repeats) note(m *machine, _ time.Time, out []effect) []effect {
	r, err := m.repeat(n.id)
	return append(out, replied[repetition]{n.reply, r, err})
}

func (n doing) note(m *machine, _ time.Time, out []effect) []effect {
	if t := m.nodes[n.id]; t.is(n.number) {
		t.doing = n.what
	}
	return out
}

func (n opened) note(m *machine, _ time.Time, out []effect) []effect {
	if t := m.nodes[n.id]; t.is(n.number) {
		t.session = n.session
	}
	return out
}

func (n billed) note(m *machine, _ time.Time, out []effect) []effect {
	if t := m.nodes[n.id]; t.is(n.number) {
		t.spent = n.spent
	}
	return out
}

func (n affords) note(m *machine, now time.Time, out []effect) []effect {
	return reply(out, n.reply, m.rules.budget.exceeded(m.spent(now)))
}

func (n fanned) note(m *machine, now time.Time, out []effect) []effect {
	return reply(out, n.reply, m.hooked(n, now))
}

func (n asks) note(m *machine, _ time.Time, out []effect) []effect {
	a, more := m.called(n.id, n.call)
	return reply(append(out, more...), n.reply, a)
}

func (n shows) note(m *machine, _ time.Time, out []effect) []effect {
	t := m.nodes[n.id]
	if c := t.find(n.call); c != nil {
		c.hidden = false
		out = m.jot(t, out)
	}
	return out
}

func (n takes) note(m *machine, _ time.Time, out []effect) []effect {
	var v verdictOn
	if c := m.nodes[n.id].find(n.call); c != nil {
		if v = (verdictOn{c.state, c.reason, c.input}); c.state != askWaits {
			c.state = askUsed
		}
	}
	return reply(out, n.reply, v)
}

func (n says) note(m *machine, _ time.Time, out []effect) []effect {
	if t := m.nodes[n.id]; t.is(n.number) {
		out = append(out, t.said.says(n)...)
	}
	return out
}

func (n saidBefore) note(m *machine, _ time.Time, out []effect) []effect {
	if t := m.nodes[n.id]; t.is(n.number) {
		return append(out, t.said.saidBefore(n.call, n.reply)...)
	}
	return reply(out, n.reply, "")
}

func (n turned) note(m *machine, _ time.Time, out []effect) []effect {
	if t := m.nodes[n.id]; t.is(n.number) {
		t.said.turned()
	}
	return out
}

func (n accepting) note(m *machine, _ time.Time, out []effect) []effect {
	return reply(out, n.reply, m.accepting(n.id, n.requeued))
}

func (written) note(m *machine, _ time.Time, out []effect) []effect {
	m.written()
	return out
}

func (unwritten) note(m *machine, _ time.Time, out []effect) []effect {
	for _, c := range m.pending {
		c.node.unkept = nil
	}
	m.pending = nil
	return out
}

func (n broken) note(m *machine, _ time.Time, out []effect) []effect {
	if m.cause == nil {
		m.cause, m.failure = n.err, &n.stop
	}
	return out
}

func (n due) note(m *machine, now time.Time, out []effect) []effect {
	m.now = now
	if t := m.nodes[n.id]; !t.holds(n.fence) || t.tenure.asked || t.tenure.armed != n.number {
		return out
	}
	var e extend // one call for all leases: their timers are one from then on
	for _, t := range m.order {
		if t.tenure != nil && t.tenure.TTL > 0 && !t.tenure.asked {
			t.tenure.asked = true
			e.each = append(e.each, extension{id: t.id, lease: t.tenure.Lease})
		}
	}
	return append(out, e)
}

func (n lapsed) note(m *machine, _ time.Time, out []effect) []effect {
	return m.lose(n.id, n.fence, out)
}

func (n knows) note(m *machine, _ time.Time, out []effect) []effect {
	// A task that is not known may be among the inputs that wait. Then its result is looked at
	// in its turn: one that is dropped here does not come again.
	id, _ := splitTicket(n.ticket)
	k := known{old: m.nodes[id] != nil && m.knows(n.ticket, n.worker, n.fence)}
	if t := m.named(n.ticket); t != nil {
		k.bare = m.rules.share == ShareWork && len(t.dependents) == 0
	}
	return reply(out, n.reply, k)
}
