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
func (t *Turn) owns(e *Delivery) bool {
	return e.Seq >= t.startsAt && !t.overBefore(e.Seq) && (e.Task == 0 || e.Task > t.startsAt)
}

// overBefore reports whether no entry from seq on is of the turn. A turn that
// never began leaves the stream alone.
func (t *Turn) overBefore(seq uint64) bool {
	return t != nil && t.state == machine.TurnEnded && (t.startsAt == machine.NotStarted || seq >= t.endsAt)
}

// enterTurn gives a message its id and its place among the open turns; mu is held.
func (u *Side) enterTurn(given **protocol.UserMessage) (*Turn, []byte, error) {
	m := *given
	if u.terminal || u.sum.Closing {
		return nil, nil, u.closedError()
	}
	if u.draining {
		return nil, nil, session.ErrDraining
	}
	if m.UUID == "" {
		c := *m
		c.UUID = kernel.NewUUID(u.cfg.Rand)
		m = &c
		*given = m
	}
	if u.turns[m.UUID] != nil {
		return nil, nil, fmt.Errorf("a message with uuid %s is already under way: every message needs a uuid of its own", m.UUID)
	}
	line, err := u.cfg.UserLine(m)
	if err != nil {
		return nil, nil, fmt.Errorf("encode user message %s: %w", m.UUID, err)
	}
	t := &Turn{UUID: m.UUID, startsAt: machine.NotStarted, result: kernel.NewPromise[*protocol.ResultMessage]()}
	if u.turns == nil {
		u.turns = make(map[string]*Turn)
	}
	u.turns[t.UUID] = t
	u.tapped(line)
	return t, line, nil
}

// TurnOver returns a channel that is closed when the turn has ended; nil if none of that
// uuid is open.
func (u *Side) TurnOver(uuid string) <-chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	if t := u.turns[uuid]; t != nil {
		return t.Done()
	}
	return nil
}

// maxQueued is how many user messages may wait for the agent to take them.
const maxQueued = 256

// Send takes a user message, once the queue of those has room. The check and the entry
// are one step: no number of callers passes the bound. A message without a uuid gets one:
// results, echoes and receipts refer to it.
func (u *Side) Send(ctx context.Context, m *protocol.UserMessage) (*Turn, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for {
		u.mu.Lock()
		if u.terminal || u.draining || u.sum.Closing || len(u.turns) < maxQueued {
			t, line, err := u.enterTurn(&m)
			u.mu.Unlock()
			if err != nil {
				return nil, err
			}
			if u.cfg.Sent != nil {
				u.cfg.Sent(ctx, u.now(), m)
			}
			u.cfg.Router(machine.UserSent{ID: t.UUID, Line: line, Prompt: machine.IsPrompt(m)}, true)
			return t, nil
		}
		wait := u.idle.wait()
		u.mu.Unlock()
		if err := u.await(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// RefuseTurns refuses user messages from now on, with [session.ErrDraining], also
// those that wait for room.
func (u *Side) RefuseTurns() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.draining = true
	u.idle.fire()
}

func (u *Side) closedError() error {
	if why := cmp.Or(u.reason, u.closing); why != nil {
		return fmt.Errorf("%w: %w", session.ErrClosed, why)
	}
	return session.ErrClosed
}

// turnOver ends a turn and returns it; nil if it is unknown.
func (u *Side) turnOver(o *machine.Outcome) *Turn {
	t := u.turns[o.ID]
	if t == nil {
		return nil
	}
	if delete(u.turns, o.ID); len(u.turns) == 0 {
		u.turns = nil
	}
	t.startsAt, t.endsAt, t.state = o.Starts, o.Ends, machine.TurnEnded
	if o.Err != nil {
		t.result.Fail(o.Err)
	} else {
		t.result.Resolve(o.Result)
	}
	return t
}

func (u *Side) isIdle() bool {
	quiet := u.sum.QuietUntil.IsZero() || !u.now().Before(u.sum.QuietUntil)
	return u.terminal || len(u.turns) == 0 && !u.sum.Running && u.sum.Tasks == 0 && quiet
}

// AwaitIdle waits until no turn is open, the agent says that it is idle, if it
// says such things, and no background task lives; or until the session ends.
func (u *Side) AwaitIdle(ctx context.Context) error {
	for {
		u.mu.Lock()
		if u.isIdle() {
			u.mu.Unlock()
			return nil
		}
		wait := u.idle.wait()
		u.mu.Unlock()
		if err := u.await(ctx, wait); err != nil {
			return err
		}
	}
}
