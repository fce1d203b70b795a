package ledger

import (
	"errors"
	"fmt"
	"slices"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// outgoing is a call or a user message that waits for the transport.
type outgoing struct {
	seq  uint64
	call *Call
	turn *Turn
}

// waiting lists what may go out now, in the order in which the user made it: a
// call must not overtake a message that was sent before it, or the message
// would run under the call's model, or mode. Before the agent is initialized
// only calls marked [First] go; once the session is closing, nothing else does
// either.
func (l *Ledger) waiting() []outgoing {
	held := l.closing || l.facts.initialized == nil
	var out []outgoing
	for _, c := range l.calls.open {
		if !c.written && (c.first || !held) {
			out = append(out, outgoing{seq: c.seq, call: c})
		}
	}
	for _, t := range l.turns.open {
		if t.state == TurnQueued && !held {
			out = append(out, outgoing{seq: t.seq, turn: t})
		}
	}
	slices.SortFunc(out, func(a, b outgoing) int {
		if first := rank(a) - rank(b); first != 0 {
			return first
		}
		return int(int64(a.seq) - int64(b.seq))
	})
	return out
}

func rank(o outgoing) int {
	if o.call != nil && o.call.first {
		return 0
	}
	return 1
}

// WriteOut hands what waits to the transport. encode makes the line of a user
// message. What cannot be encoded, or is too large, ends with that error. It
// reports whether a user message was written.
func (l *Ledger) WriteOut(encode func(*protocol.UserMessage) ([]byte, error)) (turns bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.waiting() {
		if o.call != nil {
			err = l.writeCall(o.call)
		} else {
			err = l.writeTurn(o.turn, encode)
			turns = turns || o.turn.state == TurnWritten
		}
		if err != nil {
			return turns, err
		}
	}
	return turns, nil
}

func (l *Ledger) writeCall(c *Call) error {
	fail := func(err error) {
		l.calls.close(c)
		c.answer.Fail(fmt.Errorf("control request %s: %w", c.Subtype, err))
	}
	line, err := protocol.AppendControlRequest(nil, c.ID, c.request)
	if err != nil {
		fail(err)
		return nil
	}
	switch err := l.write(line, FromHost); {
	case errors.Is(err, session.ErrTooLarge):
		fail(err)
	case err != nil:
		return err
	default:
		c.written = true
	}
	return nil
}

func (l *Ledger) writeTurn(t *Turn, encode func(*protocol.UserMessage) ([]byte, error)) error {
	line, err := encode(t.Message)
	if err != nil {
		l.endTurn(t, nil, fmt.Errorf("encode user message %s: %w", t.UUID, err))
		return nil
	}
	switch err := l.write(line, FromHost); {
	case errors.Is(err, session.ErrTooLarge):
		l.endTurn(t, nil, fmt.Errorf("user message %s of %d bytes: %w", t.UUID, len(line), err))
	case err != nil:
		return err
	default:
		t.state = TurnWritten
	}
	return nil
}
