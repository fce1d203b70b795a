package fleet

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/internal/kernel"
)

// call is a call of a tool that waits for a person, or did, and what became of it.
type call struct {
	Approval
	state    askState
	hidden   bool // the journal does not have it yet: no decision is taken before that
	taken    bool // a caller of Decide has it
	reason   string
	input    json.RawMessage           // in place of the model's; nil: as it was
	verdict  decidedRecord             // of a call that was decided
	resolved *kernel.Promise[struct{}] // settled when it is decided; nil until an attempt waits
}

type askState int8

const (
	askWaits askState = iota
	askAllowed
	askDenied
	askUsed
)

// asking is what an attempt gets that asks for a person's word.
type asking struct {
	Approval
	isNew    bool
	resolved *kernel.Promise[struct{}]
}

// verdictOn is what a person has decided.
type verdictOn struct {
	state  askState
	reason string
	input  json.RawMessage
}

// asking reports whether a call of the task waits for a person.
func (n *node) asking() bool {
	return slices.ContainsFunc(n.calls, func(c *call) bool { return c.state == askWaits })
}

// approvals are the calls that wait for a person, in the order in which they came.
func (m *machine) approvals() []Approval {
	var all []Approval
	for _, n := range m.order {
		all = append(all, n.waitingCalls()...)
	}
	slices.SortStableFunc(all, func(a, b Approval) int { return a.At.Compare(b.At) })
	return all
}

// waitingCalls are the calls of a task that wait for a person, here or in another program.
func (n *node) waitingCalls() []Approval {
	if n.result != nil {
		return nil
	}
	var all []Approval
	for _, c := range n.calls {
		if _, decided := n.answers[c.ID]; c.state == askWaits && !c.hidden && !c.taken && !decided {
			all = append(all, c.Approval)
		}
	}
	if n.tenure == nil {
		for _, a := range n.left.Approvals {
			if _, decided := n.answers[a.ID]; !decided && n.find(a.ID) == nil {
				all = append(all, a)
			}
		}
	}
	return all
}

// called finds a call among those that the task has asked for, or adds it. Its ID is the hash
// of the call.
func (m *machine) called(id string, a Approval) (asking, []effect) {
	n := m.nodes[id]
	if n == nil {
		return asking{Approval: a, resolved: kernel.NewPromise[struct{}]()}, nil
	}
	var found *call
	number := 1
	for _, c := range n.calls {
		if base, _, _ := strings.Cut(c.ID, "-"); base == a.ID {
			if number++; c.state != askUsed {
				found = c
			}
		}
	}
	isNew := found == nil
	if isNew {
		if number > 1 {
			a.ID += fmt.Sprintf("-%d", number)
		}
		found = &call{Approval: a, hidden: true}
		n.calls = append(n.calls, found)
		if d, decided := n.answers[a.ID]; decided { // while another program had the task
			found.decide(d)
		}
	}
	var out []effect
	if found.resolved == nil {
		found.resolved = kernel.NewPromise[struct{}]()
		if found.state != askWaits {
			out = append(out, replied[struct{}]{to: found.resolved})
		}
	}
	return asking{found.Approval, isNew, found.resolved}, out
}

// find returns a call of a task.
func (n *node) find(id string) *call {
	if n != nil {
		for _, c := range n.calls {
			if c.ID == id {
				return c
			}
		}
	}
	return nil
}

// decide takes a person's decision, which is in the journal, and lets the task continue.
// Several calls may wait: the next attempt asks again about those that still do.
func (in decided) step(m *machine, out []effect) []effect {
	n := m.nodes[in.task]
	if c := n.find(in.verdict.ID); c != nil {
		if c.taken = false; in.failed {
			return out
		}
		m.noteDecided(c, in.verdict)
		if c.decide(in.verdict); c.resolved != nil {
			out = append(out, replied[struct{}]{to: c.resolved})
		}
	}
	if n != nil && n.state == nodeAsks {
		out = m.enqueue(n, out)
	}
	return out
}

func (c *call) decide(v decidedRecord) {
	c.state, c.reason, c.input, c.verdict = askDenied, v.Reason, v.Input, v
	if v.Allow {
		c.state = askAllowed
	}
}

// maxDecided is how many decisions of people a snapshot has.
const maxDecided = 100

// noteDecided takes note of a person's decision.
func (m *machine) noteDecided(c *call, v decidedRecord) {
	if len(m.verdicts) == maxDecided {
		m.verdicts = slices.Delete(m.verdicts, 0, 1)
	}
	m.verdicts = append(m.verdicts, decidedOf(c, v))
}

func decidedOf(c *call, v decidedRecord) Decided {
	return Decided{ID: c.ID, Task: c.Task, Tool: c.Tool, Allow: v.Allow, Edited: v.Input != nil, By: v.By, Reason: v.Reason, At: v.At}
}

// refusal is why nothing waits under the id.
func (m *machine) refusal(id string) error {
	for _, n := range m.order {
		if c := n.find(id); c != nil && c.verdict.ID != "" {
			return &DecidedError{decidedOf(c, c.verdict)}
		}
	}
	return fmt.Errorf("approval %q: %w", id, ErrNoApproval)
}

// told is what was decided while the model was not there, for the model.
func (n *node) told() string {
	var b strings.Builder
	for _, c := range n.calls {
		switch c.state {
		case askAllowed:
			fmt.Fprintf(&b, "\nYour call of %s was approved, once. Make exactly the same call again: %s", c.Tool, short(string(c.Input)))
		case askDenied:
			fmt.Fprintf(&b, "\nYour call of %s was denied by a person. %s Do not make it again: %s", c.Tool, c.reason, short(string(c.Input)))
		}
	}
	return b.String()
}

// sayings are what an agent said before its calls of tools.
type sayings struct {
	last   map[string]string                    // by the call that started the subagent; "": the agent itself
	before map[string]string                    // by call
	waits  map[string][]*kernel.Promise[string] // by call that a person is to be asked about before its message was read
}

// says takes what an agent said with calls.
func (s *sayings) says(in says) (out []effect) {
	if s.last == nil {
		s.last, s.before = map[string]string{}, map[string]string{}
	}
	if in.text != "" {
		s.last[in.who] = in.text
	}
	for _, use := range in.uses {
		s.before[use] = s.last[in.who]
		for _, p := range s.waits[use] {
			out = append(out, replied[string]{to: p, value: s.before[use]})
		}
		delete(s.waits, use)
	}
	return out
}

// saidBefore answers what the agent said before a call, as soon as it is known.
func (s *sayings) saidBefore(id string, to *kernel.Promise[string]) []effect {
	if text, known := s.before[id]; known || id == "" {
		return []effect{replied[string]{to: to, value: text}}
	}
	if s.waits == nil {
		s.waits = map[string][]*kernel.Promise[string]{}
	}
	s.waits[id] = append(s.waits[id], to)
	return nil
}

// turned forgets what was said in the turn that has ended.
func (s *sayings) turned() { s.last, s.before = nil, nil }
