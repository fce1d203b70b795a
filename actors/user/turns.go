package user

import (
	"cmp"
	"context"
	"fmt"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Turn is a user message on its way to its result, for those who wait for it.
type Turn struct {
	UUID string

	startsAt uint64 // the first entry of the stream that belongs to it
	endsAt   uint64 // the entries before this one belong to it; valid once it has ended
	state    machine.TurnState
	result   *kernel.Promise[*protocol.ResultMessage]
}

// Done is closed when the turn has ended.
func (t *Turn) Done() <-chan struct{} { return t.result.Done() }

// Result is the turn's result; call it after Done.
func (t *Turn) Result() (*protocol.ResultMessage, error) { return t.result.Value() }

// owns reports whether an entry is of the turn.
func (t *Turn) owns(e *Entry) bool {
	return e.Seq >= t.startsAt && !t.overBefore(e.Seq) && (e.Task == 0 || e.Task > t.startsAt)
}

// overBefore reports whether no entry from seq on is of the turn. A turn that
// never began leaves the stream alone.
func (t *Turn) overBefore(seq uint64) bool {
	return t != nil && t.state == machine.TurnEnded && (t.startsAt == machine.NotStarted || seq >= t.endsAt)
}

// OpenTurn takes a user message. A message without a uuid gets one: results,
// echoes and receipts refer to it.
func (l *Ledger) OpenTurn(m *protocol.UserMessage) (*Turn, error) {
	l.mu.Lock()
	t, line, err := l.enterTurn(&m)
	l.mu.Unlock()
	return l.sent(context.Background(), t, m, line, err)
}

// sent tells the router of a turn that was entered.
func (l *Ledger) sent(ctx context.Context, t *Turn, m *protocol.UserMessage, line []byte, err error) (*Turn, error) {
	if err != nil {
		return nil, err
	}
	if l.cfg.Sent != nil {
		l.cfg.Sent(ctx, l.now(), m)
	}
	l.cfg.Router(machine.UserSent{ID: t.UUID, Line: line, Prompt: machine.IsPrompt(m)}, true)
	return t, nil
}

// enterTurn gives a message its id and its place among the open turns; mu is held.
func (l *Ledger) enterTurn(given **protocol.UserMessage) (*Turn, []byte, error) {
	m := *given
	if l.terminal || l.sum.Closing {
		return nil, nil, l.closedError()
	}
	if l.draining {
		return nil, nil, session.ErrDraining
	}
	if m.UUID == "" {
		c := *m
		c.UUID = kernel.NewUUID(l.cfg.Rand)
		m = &c
		*given = m
	}
	if l.turns[m.UUID] != nil {
		return nil, nil, fmt.Errorf("a message with uuid %s is already under way: every message needs a uuid of its own", m.UUID)
	}
	line, err := l.cfg.UserLine(m)
	if err != nil {
		return nil, nil, fmt.Errorf("encode user message %s: %w", m.UUID, err)
	}
	t := &Turn{UUID: m.UUID, startsAt: machine.NotStarted, result: kernel.NewPromise[*protocol.ResultMessage]()}
	if l.turns == nil {
		l.turns = make(map[string]*Turn)
	}
	l.turns[t.UUID] = t
	return t, line, nil
}

// TurnOver returns a channel that is closed when the turn has ended; nil if none of that
// uuid is open.
func (l *Ledger) TurnOver(uuid string) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.turns[uuid]; t != nil {
		return t.Done()
	}
	return nil
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
		if l.terminal || l.draining || l.sum.Closing || len(l.turns) < maxQueued {
			t, line, err := l.enterTurn(&m)
			l.mu.Unlock()
			return l.sent(ctx, t, m, line, err)
		}
		wait := l.idle.wait()
		l.mu.Unlock()
		if err := l.await(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// RefuseTurns refuses user messages from now on, with [session.ErrDraining], also
// those that wait for room.
func (l *Ledger) RefuseTurns() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draining = true
	l.idle.fire()
}

func (l *Ledger) closedError() error {
	if why := cmp.Or(l.reason, l.closing); why != nil {
		return fmt.Errorf("%w: %w", session.ErrClosed, why)
	}
	return session.ErrClosed
}

// turnOver ends a turn and returns it; nil if nobody knows it.
func (l *Ledger) turnOver(o *machine.Outcome) *Turn {
	t := l.turns[o.ID]
	if t == nil {
		return nil
	}
	if delete(l.turns, o.ID); len(l.turns) == 0 {
		l.turns = nil
	}
	t.startsAt, t.endsAt, t.state = o.Starts, o.Ends, machine.TurnEnded
	if o.Err != nil {
		t.result.Fail(o.Err)
	} else {
		t.result.Resolve(o.Result)
	}
	return t
}

func (l *Ledger) isIdle() bool {
	quiet := l.sum.QuietUntil.IsZero() || !l.now().Before(l.sum.QuietUntil)
	return l.terminal || len(l.turns) == 0 && !l.sum.Running && l.sum.Tasks == 0 && quiet
}

// AwaitIdle waits until no turn is open, the agent says that it is idle, if it
// says such things, and no background task lives; or until the session ends.
func (l *Ledger) AwaitIdle(ctx context.Context) error {
	for {
		l.mu.Lock()
		if l.isIdle() {
			l.mu.Unlock()
			return nil
		}
		wait := l.idle.wait()
		l.mu.Unlock()
		if err := l.await(ctx, wait); err != nil {
			return err
		}
	}
}
