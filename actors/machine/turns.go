package machine

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// TurnState is how far a user message has come.
type TurnState int

// States of a turn, in order.
const (
	TurnQueued  TurnState = iota // waits for the agent to be ready
	TurnWritten                  // handed to the transport
	TurnStarted                  // the agent said that it began
	TurnEnded                    // has its result, or the reason why not
)

func (s TurnState) String() string {
	return [...]string{"queued", "written", "started", "ended"}[s]
}

// NotStarted is the Starts of a turn that has not begun.
const NotStarted = math.MaxUint64

// Turn is a user message without a result. It owns the entries of the stream from its
// Starts on, without those of background tasks that an earlier turn has started. Only
// the reader of the whole stream gets entries that belong to no turn.
type Turn struct {
	ID     string
	Line   []byte // until it is written; until the end, if the session recovers
	Prompt bool   // the agent calls UserPromptSubmit for it in any case
	Opened time.Time
	Order  uint64
	State  TurnState
	Begun  bool   // a turn was begun while it was the oldest that was written
	Starts uint64 // the first entry of the stream that belongs to it, or NotStarted
	Named  bool   // the agent has said that it began with this message

	Seen      bool       // something has come while it was the oldest that was written
	Recovered bool       // another process has begun it, or might have
	Resend    Resend     // how it goes to the present process
	Alias     string     // the uuid of the message that makes the model continue it, or ""
	Out       []byte     // the line that is written in place of Line, if it is not nil
	Done      []ToolCall // what the dead process was seen to have done of it
}

// userSent takes a user message.
func (m *Routing) userSent(in UserSent) {
	if m.Closing || m.turn(in.ID) != nil {
		m.do(TurnOver{Outcome{ID: in.ID, Err: m.closed(), Starts: NotStarted, Ends: m.Flow.Pushed}})
		return
	}
	t := Turn{ID: in.ID, Line: in.Line, Prompt: in.Prompt, Opened: m.now, Starts: NotStarted}
	if !m.Begun {
		t.Starts, m.Begun = 0, true // what came before the first turn is the first turn's
		m.do(Moved{ID: t.ID, Starts: 0})
	}
	m.Order++
	t.Order = m.Order
	m.Turns = append(m.Turns, t)
	m.writeOut()
}

// closed is the error of what comes too late.
func (m *Routing) closed() error {
	if why := cmp.Or(m.unusable(), m.Why.Err); why != nil {
		return fmt.Errorf("%w: %w", session.ErrClosed, why)
	}
	return session.ErrClosed
}

// turn is the open turn of that id, or nil; there are few turns.
func (m *Routing) turn(id string) *Turn {
	for i := range m.Turns {
		if m.Turns[i].ID == id {
			return &m.Turns[i]
		}
	}
	return nil
}

// oldestWritten is the open turn that the agent was first given, or nil.
func (m *Routing) oldestWritten() *Turn {
	for i := range m.Turns {
		if m.Turns[i].State >= TurnWritten {
			return &m.Turns[i]
		}
	}
	return nil
}

// Running reports whether a turn is under way: one of the user's that has no result
// yet, or one that the agent started.
func (m *Routing) Running() bool { return len(m.Turns) > 0 || m.Facts.AgentRunning }

// InFlight reports whether the agent is at work on a turn: a user message was handed
// to it and has no result yet, or it says that it runs.
func (m *Routing) InFlight() bool { return m.Facts.AgentRunning || m.oldestWritten() != nil }

func (m *Routing) enter(t *Turn, s TurnState) {
	t.State = s
	m.follow()
	m.do(Moved{ID: t.ID, Starts: t.Starts, State: s})
}

func (m *Routing) move(t *Turn, starts uint64) {
	if t.Starts != starts {
		t.Starts = starts
		m.do(Moved{ID: t.ID, Starts: starts, State: t.State})
	}
}

// outcome closes an open turn. shown: its last message, which ends it, is about to
// be pushed.
func (m *Routing) outcome(t *Turn, r *protocol.ResultMessage, err error, shown bool) Outcome {
	o := Outcome{ID: t.ID, Result: r, Err: err, Starts: t.Starts, Ends: m.Flow.Pushed}
	if shown {
		o.Starts = min(o.Starts, o.Ends)
		o.Ends++
	}
	i := slices.IndexFunc(m.Turns, func(open Turn) bool { return open.ID == o.ID })
	if m.Turns = slices.Delete(m.Turns, i, i+1); len(m.Turns) == 0 {
		m.Turns = nil
	}
	m.follow()
	m.forgetAnswers()
	return o
}

// turnOver ends a turn without a message.
func (m *Routing) turnOver(t *Turn, err error) {
	o := m.outcome(t, nil, err, false)
	m.deliver() // what came before
	m.do(TurnOver{o})
}

// resultTurns finds the turns that a result ends: by the uuids it names, else the
// oldest one written, unless the agent started the turn itself.
func (m *Routing) resultTurns(r *protocol.ResultMessage) []string {
	var ended []string
	uuids := r.UserMessageUUIDs
	if len(uuids) == 0 && r.UserMessageUUID != "" {
		uuids = []string{r.UserMessageUUID}
	}
	for i := range m.Turns {
		if t := &m.Turns[i]; slices.Contains(uuids, t.current()) {
			ended = append(ended, t.ID)
		}
	}
	if len(uuids) > 0 || r.Origin != nil {
		return ended
	}
	if t := m.oldestWritten(); t != nil {
		return []string{t.ID}
	}
	return nil
}
