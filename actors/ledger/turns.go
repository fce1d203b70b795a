package ledger

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
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

// Turn is a user message on its way to its result.
type Turn struct {
	UUID    string
	Message *protocol.UserMessage
	Opened  time.Time

	seq      uint64
	state    TurnState
	begun    bool   // a turn was begun while it was the oldest that was written
	startsAt uint64 // the first entry of the stream that belongs to it, or notStarted
	named    bool   // the agent has said that it began with this message
	endsAt   uint64 // the entries before this one belong to it; valid once it has ended
	result   *kernel.Promise[*protocol.ResultMessage]
}

// Done is closed when the turn has ended.
func (t *Turn) Done() <-chan struct{} { return t.result.Done() }

// Result is the turn's result; call it after Done.
func (t *Turn) Result() (*protocol.ResultMessage, error) { return t.result.Value() }

type turns struct {
	open  []*Turn // in order of arrival, not ended
	begun bool    // a turn of the user's or of the agent's has begun
	idle  signal  // fires whenever the session may have become idle
}

// byUUID is the open turn of that uuid, or nil: there are few.
func (t *turns) byUUID(id string) *Turn {
	for _, turn := range t.open {
		if turn.UUID == id {
			return turn
		}
	}
	return nil
}

// OpenTurn takes a user message. A message without a uuid gets one: results,
// echoes and receipts refer to it.
func (l *Ledger) OpenTurn(m *protocol.UserMessage) (*Turn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.openTurn(m)
}

func (l *Ledger) openTurn(m *protocol.UserMessage) (*Turn, error) {
	if l.closing {
		return nil, l.closedError()
	}
	if m.UUID == "" {
		c := *m
		c.UUID = kernel.NewUUID(l.cfg.Rand)
		m = &c
	}
	if l.turns.byUUID(m.UUID) != nil {
		return nil, fmt.Errorf("a message with uuid %s is already under way: every message needs a uuid of its own", m.UUID)
	}
	t := &Turn{
		UUID: m.UUID, Message: m, Opened: l.cfg.Clock.Now(), startsAt: notStarted,
		result: kernel.NewPromise[*protocol.ResultMessage](),
	}
	if !l.turns.begun {
		t.startsAt, l.turns.begun = 0, true // what came before the first turn is the first turn's
	}
	l.order++
	t.seq = l.order
	l.turns.open = append(l.turns.open, t)
	return t, nil
}

// maxQueued is how many user messages may wait for the agent to take them.
const maxQueued = 256

// AdmitTurn is OpenTurn that waits until the queue of user messages has room.
// The check and the entry are one step: no number of callers passes the bound.
func (l *Ledger) AdmitTurn(ctx context.Context, m *protocol.UserMessage) (*Turn, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for {
		l.mu.Lock()
		if l.closing || len(l.turns.open) < maxQueued {
			defer l.mu.Unlock()
			return l.openTurn(m)
		}
		wait := l.turns.idle.wait()
		l.mu.Unlock()
		if err := l.cfg.Exec.Await(ctx, wait); err != nil {
			return nil, err
		}
	}
}

func (l *Ledger) closedError() error {
	if l.reason != nil {
		return fmt.Errorf("%w: %w", session.ErrClosed, l.reason)
	}
	return session.ErrClosed
}

func (l *Ledger) endTurn(t *Turn, r *protocol.ResultMessage, err error) {
	l.endTurnWith(t, r, err, r != nil)
}

// endTurnWith is endTurn for a turn whose last message, if it is shown, is about to
// be pushed.
func (l *Ledger) endTurnWith(t *Turn, r *protocol.ResultMessage, err error, shown bool) {
	i := slices.Index(l.turns.open, t)
	if i < 0 {
		return
	}
	l.turns.open = slices.Delete(l.turns.open, i, i+1)
	t.state, t.endsAt = TurnEnded, l.stream.pushed
	if shown {
		t.startsAt = min(t.startsAt, t.endsAt)
		t.endsAt++
	}
	if err != nil {
		t.result.Fail(err)
	} else {
		t.result.Resolve(r)
	}
	l.forgetAnswers()
	l.turns.idle.fire()
	l.stream.wake.fire() // a turn may end without a frame
}

// failAll ends every open turn; what was delivered before endsAt belongs to
// them.
func (t *turns) failAll(err error, endsAt uint64) {
	for _, turn := range t.open {
		turn.state, turn.endsAt = TurnEnded, endsAt
		turn.result.Fail(err)
	}
	t.open = nil
	t.idle.fire()
}

// resultTurns finds the turns that a result ends: by the uuids it names, else
// the oldest one written, unless the agent started the turn itself.
func (l *Ledger) resultTurns(r *protocol.ResultMessage) []*Turn {
	var ended []*Turn
	uuids := r.UserMessageUUIDs
	if len(uuids) == 0 && r.UserMessageUUID != "" {
		uuids = []string{r.UserMessageUUID}
	}
	for _, id := range uuids {
		if t := l.turns.byUUID(id); t != nil {
			ended = append(ended, t)
		}
	}
	if len(uuids) > 0 || r.Origin != nil {
		return ended
	}
	if t := l.turns.oldestWritten(); t != nil {
		return []*Turn{t}
	}
	return nil
}

// oldestWritten is the open turn that the agent was first given, or nil.
func (t *turns) oldestWritten() *Turn {
	for _, turn := range t.open {
		if turn.state >= TurnWritten {
			return turn
		}
	}
	return nil
}

// Running reports whether a turn is under way: one of the user's that has no
// result yet, or one that the agent started.
func (l *Ledger) Running() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running()
}

func (l *Ledger) running() bool { return len(l.turns.open) > 0 || l.facts.agentRunning }

// InFlight reports whether the agent is at work on a turn: a user message was
// handed to it and has no result yet, or it says that it runs.
func (l *Ledger) InFlight() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.facts.agentRunning || l.turns.oldestWritten() != nil
}

// Busy reports whether the agent has anything to do, or may start something by
// itself: a turn in flight, or a background task.
func (l *Ledger) Busy() bool {
	if l.InFlight() {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.facts.tasks) > 0
}

func (l *Ledger) idle() bool {
	return l.terminal || (!l.running() && len(l.facts.tasks) == 0 && l.quiet())
}

// AwaitIdle waits until no turn is open, the agent says that it is idle, if it
// says such things, and no background task lives; or until the session ends.
func (l *Ledger) AwaitIdle(ctx context.Context) error {
	for {
		l.mu.Lock()
		if l.idle() {
			l.mu.Unlock()
			return nil
		}
		wait := l.turns.idle.wait()
		l.mu.Unlock()
		if err := l.cfg.Exec.Await(ctx, wait); err != nil {
			return err
		}
	}
}
