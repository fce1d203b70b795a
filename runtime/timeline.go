package runtime

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/session"
)

// Timeline is the past of a session: when it had a process, worked on a turn, ran a tool, waited
// for a person. At most the last 500 intervals of each kind are kept, and 100 marks. Its JSON
// form is stable. Names of tools come from the model.
type Timeline struct {
	At        time.Time `json:"at"`        // when it was read, by the runtime's clock
	From      time.Time `json:"from"`      // when the session was opened
	Processes []Span    `json:"processes"` // Name is "process" and its number, with the pid of the one that runs
	Turns     []Span    `json:"turns"`     // Name is the number of the turn, from 1; ID the uuid of the user message, or "agent"
	Tools     []Span    `json:"tools"`     // Name is the tool's, ID that of the call
	Waits     []Span    `json:"waits"`     // for a person, of 100 ms or more
	Marks     []Mark    `json:"marks"`     // deaths of the agent, crashes of actors, acts of people, oldest first
	Forgotten int       `json:"forgotten"` // intervals that were dropped, because there were too many
	Partial   bool      `json:"partial"`   // the session did not answer in time: only Marks are there
}

// Span is an interval of a [Timeline]. Those of a kind are in the order of their ends, and those
// that last are the last ones.
type Span struct {
	Name string    `json:"name"`        // what it was; see Timeline
	ID   string    `json:"id"`          // of the turn, the call or the request; empty of a process
	From time.Time `json:"from"`        // when it began, by the runtime's clock
	To   time.Time `json:"to,omitzero"` // zero while it lasts
}

// Mark is an instant of a [Timeline].
type Mark struct {
	At    time.Time `json:"at"`    // when it happened, by the runtime's clock
	Kind  string    `json:"kind"`  // "death" of the agent, "crash" of an actor, or "steered" by a person
	Actor string    `json:"actor"` // of a crash: its path, such as fleet/s#1/router#1
	Why   string    `json:"why"`   // at most 200 characters
}

// maxMarks is how many marks of a session are kept.
const maxMarks = 100

// mark takes note of a death or a crash. The lock of the events is held.
func (s *Session) mark(r *session.EventRecord) {
	m := Mark{At: r.At}
	switch e := r.Event.(type) {
	case *session.ActorFailed:
		m.Kind, m.Actor, m.Why = "crash", e.Actor, short(fmt.Sprint(e.Reason))
	case *session.Recovering:
		m.Kind, m.Why = "death", short(fmt.Sprint(e.Death.Err))
		s.rt.counts.restarts.Add(1)
	case *session.Steered:
		m.Kind, m.Why = "steered", short(e.String())
	default:
		return
	}
	var all []Mark
	if old := s.marks.Load(); old != nil {
		all = slices.Clone(*old)
	}
	if len(all) == maxMarks {
		all = all[1:]
	}
	all = append(all, m)
	s.marks.Store(&all)
}

// Timeline returns the session's past. A session that has ended, or does not answer within a
// second, has only marks.
func (s *Session) Timeline(ctx context.Context) Timeline {
	t := Timeline{
		At: s.rt.sys.Clock().Now(), From: s.opened,
		Processes: []Span{}, Turns: []Span{}, Tools: []Span{}, Waits: []Span{}, Marks: []Mark{},
	}
	if marks := s.marks.Load(); marks != nil {
		t.Marks = *marks
	}
	ctx, cancel := s.askable(ctx)
	defer cancel()
	past, err := s.core.Past(ctx)
	if err != nil {
		t.Partial = true
		return t
	}
	t.Forgotten = past.Forgotten
	t.Processes = spans(past.Processes, past.Process)
	for i := range t.Processes {
		p := &t.Processes[i]
		if p.To.IsZero() && s.PID() != 0 {
			p.Name = fmt.Sprintf("%s, pid %d", p.Name, s.PID())
		}
	}
	t.Turns = spans(past.PastTurns, past.Turn)
	t.Tools = spans(past.PastTools, past.Tools...)
	t.Waits = spans(past.PastWaits, past.Waits...)
	return t
}

// spans are the intervals that are over, and those that last.
func spans(over []machine.Interval, last ...machine.Interval) []Span {
	all := make([]Span, 0, len(over)+len(last))
	for _, i := range slices.Concat(over, last) {
		if i.From.IsZero() {
			continue
		}
		name := i.Name
		switch {
		case name == "" && i.ID == "":
			name = fmt.Sprintf("process %d", i.N)
		case name == "":
			name = fmt.Sprint(i.N)
		}
		all = append(all, Span{name, i.ID, i.From, i.To})
	}
	return all
}
