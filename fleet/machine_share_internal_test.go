package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/fleet/queue"
	"github.com/agent-troupe/troupe/internal/kernel"
)

// TestAResultBeforeItsTask: a program asks about a result of the queue at once, also while the
// tasks wait to be admitted. The result must not be dropped, because it comes once.
func TestAResultBeforeItsTask(t *testing.T) {
	t.Parallel()
	r := testRules(1)
	r.worker = "one"
	m := newMachine(r)
	ask := func(ticket string) known {
		reply := kernel.NewPromise[known]()
		out := knows{ticket, "two", 7, reply}.note(m, time.Unix(0, 0), nil)
		require.Len(t, out, 1)
		out[0].(interface{ settle() }).settle()
		got, err := reply.Value()
		require.NoError(t, err)
		return got
	}
	assert.False(t, ask("a").old)
	m.nodes["a"] = &node{spec: spec{id: "a"}}
	assert.False(t, ask("a").old)
	m.nodes["a"].state = nodeOver
	assert.True(t, ask("a").old)
}

// TestACancelOfAllKnowsWhatCameAfterIt: a program that is started again knows from its journal that a task was
// requeued, and then reads the decision to cancel all, which was made before that.
func TestACancelOfAllKnowsWhatCameAfterIt(t *testing.T) {
	t.Parallel()
	canceled := func(arg string) (ids []string) {
		r := testRules(1)
		r.worker, r.concurrency = "one", 1
		m := newMachine(r)
		m.step(time.Unix(0, 0), added{specs: []spec{{id: "never"}, {id: "once"}, {id: "twice"}}, last: true, past: map[string]*node{
			"once": {requeued: 1}, "twice": {requeued: 2},
		}}, nil)
		for _, e := range m.step(time.Unix(1, 0), ordered{queue.Decision{ID: jobID(1), Op: opCancelJob, Arg: arg}, nil}, nil) {
			if c, ok := e.(canceling); ok {
				ids = append(ids, c.id)
			}
		}
		return ids
	}
	assert.Equal(t, []string{"never"}, canceled(""))
	assert.Equal(t, []string{"never", "once"}, canceled(`{"once":1,"twice":1}`))
	assert.Equal(t, []string{"never", "once", "twice"}, canceled(`{"once":1,"twice":2}`))
	assert.Empty(t, canceled(`{"once":`), "what cannot be read cancels nothing")
}

// leases is a machine that shares its only task, a, whose attempts run under leases. Each step of it is a
// second later.
type leases struct {
	*machine
	now time.Time
}

func newLeases() *leases {
	r := testRules(1)
	r.worker = "one"
	l := &leases{newMachine(r), time.Unix(0, 0)}
	l.step(caughtUp{})
	l.step(added{specs: []spec{{id: "a"}}, last: true})
	return l
}

func (l *leases) step(in input) {
	l.now = l.now.Add(time.Second)
	l.machine.step(l.now, in, nil)
}

func (l *leases) note(n note) []effect { return n.note(l.machine, l.now, nil) }

// lease leases the task for the attempt that has begun.
func (l *leases) lease(fence uint64) {
	n := l.nodes["a"]
	l.step(leased{n.id, n.number, queue.Lease{Task: n.ticket(), Worker: "one", Fence: fence, TTL: time.Minute}, l.now, kernel.NewPromise[struct{}]()})
}

// jots gives the queue a note of the attempt.
func (l *leases) jots() (out []effect, reply *kernel.Promise[struct{}]) {
	reply = kernel.NewPromise[struct{}]()
	return l.note(jots{id: "a", number: l.nodes["a"].number, begins: true, reply: reply}), reply
}

// settles answers those that the effects answer.
func settles(out []effect) {
	for _, e := range out {
		if e, ok := e.(interface{ settle() }); ok {
			e.settle()
		}
	}
}

// notedIn is the fence of the note among the effects; 0 without one.
func notedIn(out []effect) uint64 {
	for _, e := range out {
		if e, ok := e.(jot); ok {
			return e.lease.Fence
		}
	}
	return 0
}

// The queue answers to a note after the lease has lapsed, and after this program has leased the task again. The
// note of the attempt that runs now is not refused for that: it is written then.
func TestAnAnswerToANoteOfAnOlderLease(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{"it is lost": queue.ErrLeaseLost, "it was written": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newLeases()
			m.lease(1)
			out, first := m.jots()
			require.EqualValues(t, 1, notedIn(out))
			old := m.nodes["a"].tenure.Lease
			m.note(lapsed{"a", 1})
			m.step(ended{"a", outcome{status: Interrupted}})
			m.now = m.nodes["a"].due
			m.step(woken{})
			require.True(t, m.nodes["a"].is(2))
			m.lease(2)
			out, second := m.jots()
			require.Zero(t, notedIn(out), "one note is under way at a time")

			out = m.note(jotted{id: "a", lease: old, usage: Usage{USD: 1}, lost: err != nil, err: err})
			settles(out)
			assert.EqualValues(t, 2, notedIn(out))
			assert.False(t, isOver(second))
			assert.Zero(t, m.nodes["a"].noted)
			settles(m.note(jotted{id: "a", lease: m.nodes["a"].tenure.Lease}))
			assert.True(t, isOver(second))
			_, err := second.Value()
			require.NoError(t, err)
			assert.False(t, isOver(first), "its attempt is over")
		})
	}
}

// A note of an attempt whose task begins anew meanwhile says nothing about the new beginning.
func TestAnAnswerToANoteOfAnOlderTicket(t *testing.T) {
	t.Parallel()
	m := newLeases()
	m.lease(1)
	m.jots()
	m.step(ordered{queue.Decision{ID: requeueID("a#1"), Op: opRequeue, Task: "a#1"}, nil})
	m.note(jotted{id: "a", lease: m.nodes["a"].tenure.Lease, usage: Usage{USD: 1}})
	assert.Zero(t, m.nodes["a"].noted)
}

func isOver(p *kernel.Promise[struct{}]) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

// The note of a ticket that another program has taken already is kept until the decision about it comes, and not
// dropped while the attempt of the old ticket ends here.
func TestANoteBeforeItsTicket(t *testing.T) {
	t.Parallel()
	note := func(ticket, call string) seen {
		return seen{ticket: ticket, left: TaskNote{Worker: "two", Approvals: []Approval{{ID: call}}}}
	}
	requeue := func(ticket string) ordered {
		return ordered{queue.Decision{ID: requeueID(ticket), Op: opRequeue, Task: ticket}, nil}
	}
	ends := ended{"a", outcome{status: Interrupted}}
	for name, c := range map[string]struct {
		inputs []input
		want   []string
	}{
		"after the decision":                  {[]input{requeue("a#1"), ends, note("a#1", "x")}, []string{"x"}},
		"before the decision":                 {[]input{note("a#1", "x"), requeue("a#1"), ends}, []string{"x"}},
		"the last one counts":                 {[]input{note("a#1", "x"), note("a#1", "y"), requeue("a#1"), ends}, []string{"y"}},
		"while the attempt ends":              {[]input{requeue("a#1"), note("a#1", "x"), ends}, []string{"x"}},
		"of a later ticket":                   {[]input{note("a#2", "x"), note("a#1", "y"), requeue("a#1"), ends}, nil},
		"of a later ticket, which is decided": {[]input{note("a#2", "x"), note("a#1", "y"), requeue("a#2"), ends}, []string{"x"}},
		"of an older ticket":                  {[]input{requeue("a#2"), note("a#1", "x"), ends}, nil},
		"of no ticket":                        {[]input{note("a#x", "x"), note("b#1", "x"), requeue("a#1"), ends}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newLeases()
			m.lease(1)
			for _, in := range c.inputs {
				m.step(in)
			}
			var got []string
			for _, a := range m.approvals() {
				got = append(got, a.ID)
			}
			assert.Equal(t, c.want, got)
		})
	}
}

// A start that the queue refuses, or that Before decides, is not among the attempts: not in the journal, and not as the
// end of the attempt before it.
func TestAStartWithoutAnAttempt(t *testing.T) {
	t.Parallel()
	refused := ended{"a", outcome{status: Interrupted, refused: true, left: &report{}}}
	ran := ended{"a", outcome{status: Crashed, retry: true, why: "exit", left: &report{}}}
	kept := func(out []effect) (all []Attempt) {
		for _, e := range out {
			if e, ok := e.(again); ok {
				all = append(all, e.record.Attempt)
				assert.Equal(t, e.record.Attempt.Number > 0, e.told)
			}
		}
		return all
	}
	requeue := ordered{queue.Decision{ID: requeueID("a#1"), Op: opRequeue, Task: "a#1"}, nil}

	m := newLeases()
	m.step(requeue)
	assert.Equal(t, []Attempt{{}}, kept(m.machine.step(m.now, refused, nil)))
	n := m.nodes["a"]
	assert.True(t, n.is(1), "it starts again")
	assert.True(t, n.begun())
	assert.Equal(t, 1, n.counted())

	m = newLeases()
	m.lease(1)
	require.Len(t, kept(m.machine.step(m.now, ran, nil)), 1)
	n = m.nodes["a"]
	m.now = n.due
	m.step(woken{})
	require.True(t, n.is(2))
	m.step(ended{"a", outcome{status: Failed, left: &report{decided: "Before failed it"}}})
	require.Equal(t, nodeClaims, n.state)
	out := m.machine.step(m.now, claimed{id: "a", lost: true}, nil)
	assert.Equal(t, []Attempt{{}}, kept(out))
	require.Len(t, n.tries, 1)
	assert.Equal(t, Crashed, n.tries[0].Status)

	h := history{tasks: map[string]*node{"a": {}}}
	require.NoError(t, h.apply(&journal.Record{Kind: kindAttempt, Task: "a", Attempt: 1, Data: []byte(`{"next":"fresh"}`)}))
	assert.Empty(t, h.tasks["a"].tries)
}
