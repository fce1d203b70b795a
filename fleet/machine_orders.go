package fleet

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/fleet/queue"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// The ops of decisions in a queue. The Task of a decision is a ticket.
const (
	opCancel  = "cancel"
	opRequeue = "requeue" // its Task is the ticket that it makes
	opPause   = "pause"
	opResume  = "resume"
	opRetune  = "retune" // its Arg is the number
	opAllow   = "allow"  // its ID ends with that of the approval; its Arg is the changed input, or empty
	opDeny    = "deny"   // its Arg is the reason
	// opCancelJob cancels all tasks. Its Arg is how often tasks were requeued before it, as JSON by id: a
	// task that was requeued later is not canceled, also in a program that comes after both.
	opCancelJob = "cancel_job"
)

// The IDs of decisions are such that programs which decide the same at the same time make one
// decision, and that one which comes again is known.
func cancelID(ticket string) string           { return opCancel + "." + ticket }
func requeueID(ticket string) string          { return opRequeue + "." + ticket }
func answerID(ticket, approval string) string { return "answer." + ticket + "." + approval }
func jobID(number int) string                 { return fmt.Sprint("job.", number) }
func ticketOf(id string, requeued int) string {
	return (&node{spec: spec{id: id}, requeued: requeued}).ticket()
}
func approvalOf(d *queue.Decision) (id string) { return strings.TrimPrefix(d.ID, answerID(d.Task, "")) }

// splitTicket is the task of a ticket, and how often it was requeued; -1 if the number is wrong.
func splitTicket(ticket string) (id string, requeued int) {
	id, number, again := strings.Cut(ticket, "#")
	if !again {
		return id, 0
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 {
		return id, -1
	}
	return id, n
}

// Inputs about decisions of a queue.
type (
	// ordered: the queue has a decision.
	ordered struct {
		queue.Decision
		reply *kernel.Promise[struct{}]
	}
	// recorded: the queue has answered this program's decision.
	recorded struct {
		queue.Decision
		err   error
		reply *kernel.Promise[struct{}]
	}
	// answers: a person has decided about a call of a shared job.
	answers struct {
		Answer
		reply *kernel.Promise[struct{}]
	}
	// caughtUp: all that the queue had when this program came has come.
	caughtUp struct{}
)

// Effects about decisions of a queue.
type (
	// decide gives the queue a decision.
	decide struct {
		queue.Decision
		reply *kernel.Promise[struct{}] // nil if no caller waits
	}
	// answering: a call is decided.
	answering struct {
		task    string
		attempt int
		record  decidedRecord
	}
)

func (decide) isEffect()    {}
func (answering) isEffect() {}

func (caughtUp) step(m *machine, out []effect) []effect {
	m.current = true
	return m.pauseAll(out)
}

// pauseAll pauses the job as the last decision about that says.
func (m *machine) pauseAll(out []effect) []effect {
	if !m.current || m.halts == m.haltsAll {
		return out
	}
	m.haltsAll = m.halts
	return append(out, pausing{m.halts})
}

// decides has a decision about a task recorded.
func (m *machine) decides(op string, n *node, reply *kernel.Promise[struct{}], out []effect) []effect {
	d := queue.Decision{Op: op, Task: n.ticket(), By: m.rules.worker, At: m.now.UTC()}
	if d.ID = cancelID(d.Task); op == opRequeue {
		d.Task = ticketOf(n.id, n.requeued+1)
		d.ID = requeueID(d.Task)
	}
	m.ordering++
	return append(out, decide{d, reply})
}

// recorded answers the caller. The job waits for the decision to come back, so that it does not
// end before it has obeyed.
func (in recorded) step(m *machine, out []effect) []effect {
	m.ordering--
	if err := in.failed(); err != nil {
		return append(out, answered{in.reply, err})
	}
	if !m.decided[in.ID] {
		m.expected[in.ID] = true
	}
	return append(out, answered{to: in.reply})
}

// failed is the error for the caller: another decision with the ID has decided the same about a
// task, and perhaps something else about a call.
func (in recorded) failed() error {
	switch {
	case in.err == nil:
		return nil
	case !errors.Is(in.err, queue.ErrDecided):
		return &queueError{in.err}
	case in.Op == opAllow || in.Op == opDeny:
		return fmt.Errorf("approval %q: %w", approvalOf(&in.Decision), ErrNoApproval)
	}
	return nil
}

// ordered obeys a decision, once.
func (in ordered) step(m *machine, out []effect) []effect {
	if !m.decided[in.ID] {
		m.decided[in.ID] = true
		out = m.obeys(&in.Decision, out)
	}
	delete(m.expected, in.ID)
	return append(out, answered{to: in.reply})
}

func (m *machine) obeys(d *queue.Decision, out []effect) []effect {
	id, requeued := splitTicket(d.Task)
	n := m.nodes[id]
	switch d.Op {
	case opPause, opResume:
		m.halts = d.Op == opPause
		return m.pauseAll(out)
	case opRetune:
		if number, err := strconv.Atoi(d.Arg); err == nil && number >= 0 {
			return retuned{number}.step(m, out)
		}
	case opCancel:
		if n != nil && n.requeued == requeued {
			return steered{id: id, what: steerCancel, ordered: true}.step(m, out)
		}
		return out
	case opCancelJob:
		return m.cancelAll(d, out)
	case opRequeue:
		if n != nil && n.requeued < requeued {
			return steered{id: id, what: steerRequeue, ordered: true, number: requeued}.step(m, out)
		}
		return out
	case opAllow, opDeny:
		if n != nil && n.requeued == requeued {
			return m.answered(n, answerIn(d), out)
		}
		return out
	}
	return append(out, tell{Event{Kind: EventWarning, Detail: fmt.Sprintf("the decision %q about %q, of %s, is not known to this version: it was left out", d.Op, d.Task, d.By)}})
}

// cancelAll cancels the tasks that have no result.
func (m *machine) cancelAll(d *queue.Decision, out []effect) []effect {
	before := map[string]int{}
	if d.Arg != "" && json.Unmarshal([]byte(d.Arg), &before) != nil {
		return append(out, tell{Event{Kind: EventWarning, Detail: fmt.Sprintf("the decision %q of %s cannot be read: it was left out", d.ID, d.By)}})
	}
	for _, n := range slices.Clone(m.order) {
		if n.state != nodeOver && n.requeued <= before[n.id] {
			out = steered{id: n.id, what: steerCancel, ordered: true}.step(m, out)
		}
	}
	return out
}

// answered takes the answer to a call. One whose call is not known here is for the attempt that
// makes it, perhaps once another program has lost the task.
func (m *machine) answered(n *node, v decidedRecord, out []effect) []effect {
	if n.answers == nil {
		n.answers = map[string]decidedRecord{}
	}
	n.answers[v.ID] = v
	if c := n.find(v.ID); c == nil || c.state != askWaits {
		return out
	}
	out = append(out, answering{n.id, n.number, v})
	return decided{task: n.id, verdict: v}.step(m, out)
}

// answerIn is the answer that a decision is.
func answerIn(d *queue.Decision) decidedRecord {
	v := decidedRecord{ID: approvalOf(d), Allow: d.Op == opAllow, By: d.By, At: d.At}
	switch {
	case !v.Allow:
		v.Reason = d.Arg
	case d.Arg != "" && json.Valid([]byte(d.Arg)):
		v.Input = json.RawMessage(d.Arg)
	}
	return v
}

// answers records a person's answer, of a call here or in another program.
func (in answers) step(m *machine, out []effect) []effect {
	for _, n := range m.order {
		for _, a := range n.waitingCalls() {
			if a.ID != in.ID {
				continue
			}
			d := queue.Decision{ID: answerID(n.ticket(), a.ID), Op: opDeny, Task: n.ticket(), Arg: in.Reason, By: cmp.Or(in.By, m.rules.worker), At: m.now.UTC()}
			if in.Allow {
				d.Op, d.Arg = opAllow, string(in.Input)
			}
			m.ordering++
			return append(out, decide{d, in.reply})
		}
	}
	return append(out, answered{in.reply, m.refusal(in.ID)})
}

// requeues are the decisions that a journal knows.
func requeues(past map[string]*node, worker string, at time.Time) (all []queue.Decision) {
	for _, id := range slices.Sorted(maps.Keys(past)) {
		for number := 1; number <= past[id].requeued; number++ {
			d := queue.Decision{Op: opRequeue, Task: ticketOf(id, number), By: worker, At: at.UTC()}
			d.ID = requeueID(d.Task)
			all = append(all, d)
		}
	}
	return all
}

// sight is what a program has seen of a queue that only decides.
type sight struct {
	requeued map[string]int    // of each task
	over     map[string]Status // by ticket
	waits    map[string]string // the ticket of each call that waits for a person
	decided  map[string]bool
	current  bool
}

func newSight() *sight {
	return &sight{requeued: map[string]int{}, over: map[string]Status{}, waits: map[string]string{}, decided: map[string]bool{}}
}

func (s *sight) take(c queue.Change) {
	if d := c.Decision; d != nil {
		s.decided[d.ID] = true
		if d.Op == opRequeue {
			s.knows(d.Task)
		}
		return
	}
	if c.State == queue.Current {
		s.current = true
		return
	}
	s.knows(c.Task)
	if c.State == queue.Over {
		var r struct{ Status Status }
		_ = json.Unmarshal(c.Result, &r) // else it is over with another status
		s.over[c.Task] = r.Status
		return
	}
	var left TaskNote
	if json.Unmarshal(c.Note, &left) == nil {
		for _, a := range left.Approvals {
			s.waits[a.ID] = c.Task
		}
	}
}

func (s *sight) knows(ticket string) {
	id, requeued := splitTicket(ticket)
	s.requeued[id] = max(s.requeued[id], requeued)
}

// nextID is the ID of the next decision about the job.
func (s *sight) nextID() string {
	number := 1
	for s.decided[jobID(number)] {
		number++
	}
	return jobID(number)
}

// decision is what an order comes to, or nil if that is so already.
func (s *sight) decision(o *Order, at time.Time) (*queue.Decision, error) {
	d := &queue.Decision{Op: o.Op, By: o.By, At: at.UTC()}
	switch o.Op {
	case opPause, opResume, opRetune:
		if o.Op == opRetune {
			if o.N < 1 {
				return nil, &session.ConfigError{Option: "Order.N", Problem: fmt.Sprintf("is %d", o.N), Fix: "give a number from 1, or pause the job"}
			}
			d.Arg = strconv.Itoa(o.N)
		}
		d.ID = s.nextID()
	case opCancel, opRequeue:
		if o.Op == opCancel && o.Task == "" {
			again := maps.Clone(s.requeued)
			maps.DeleteFunc(again, func(_ string, n int) bool { return n == 0 })
			arg, err := json.Marshal(again)
			if err != nil {
				return nil, err
			}
			d.Op, d.ID, d.Arg = opCancelJob, s.nextID(), string(arg)
			break
		}
		requeued, there := s.requeued[o.Task]
		if !there {
			return nil, fmt.Errorf("task %q: %w", o.Task, ErrNoTask)
		}
		if o.Op == opRequeue {
			d.Task = ticketOf(o.Task, requeued+1)
			d.ID = requeueID(d.Task)
			break
		}
		d.Task = ticketOf(o.Task, requeued)
		if status, over := s.over[d.Task]; over && status == Canceled {
			return nil, nil //nolint:nilnil // there is nothing to decide
		} else if over {
			return nil, fmt.Errorf("task %q: %w", o.Task, ErrTaskOver)
		}
		d.ID = cancelID(d.Task)
	case opAllow, opDeny:
		ticket, there := s.waits[o.Approval]
		if !there || s.decided[answerID(ticket, o.Approval)] {
			return nil, fmt.Errorf("approval %q: %w", o.Approval, ErrNoApproval)
		}
		d.Task, d.ID, d.Arg = ticket, answerID(ticket, o.Approval), o.Reason
		if o.Op == opAllow {
			d.Arg = string(o.Input)
		}
	default:
		return nil, &session.ConfigError{Option: "Order.Op", Problem: fmt.Sprintf("is %q", o.Op), Fix: "take cancel, requeue, pause, resume, retune, allow or deny"}
	}
	return d, nil
}
