package machine

import (
	"errors"
	"fmt"
	"slices"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Bounds of what is written and not taken by the agent, in bytes. A small line
// always finds room: the user's are as many as calls and turns, and of answers
// there are as many as the agent asked for.
const (
	writeBound = 32 << 20
	smallLine  = 64 << 10
	// writeSlack is how much the transport may have taken without saying so.
	writeSlack = 1 << 20
)

// write hands a line to the transport.
func (m *Routing) write(line []byte, as Class) error {
	switch n := int64(len(line)); {
	case !m.Up:
		return session.ErrTransportClosed
	case as == Denial:
	case n > writeBound:
		return session.ErrTooLarge
	case n > smallLine && m.Queued+n > writeBound+writeSlack:
		return session.ErrNoRoom
	}
	m.Queued += int64(len(line))
	m.do(Write{line, as})
	return nil
}

// writeOut hands pending lines to the transport, in the order of the user's calls: a
// call must not overtake a message that was sent before it, or the message would run
// under the call's model, or mode. Before the agent is initialized, and once the
// session is closing, only calls of the session itself are written. A line that is too
// large ends with that error.
func (m *Routing) writeOut() {
	if !m.Up {
		return
	}
	for i := 0; i < len(m.Calls); { // the session's own first
		if c := &m.Calls[i]; !c.Own || c.Written {
			i++
		} else if m.writeCall(i) == waits {
			return
		}
	}
	for !m.Closing && !m.Resting && m.Facts.Initialized != nil && !m.probes() {
		c := slices.IndexFunc(m.Calls, func(c Call) bool { return !c.Written })
		t := slices.IndexFunc(m.Turns, func(t Turn) bool { return t.State == TurnQueued })
		did := waits
		switch {
		case c < 0 && t < 0:
		case t < 0 || c >= 0 && m.Calls[c].Order < m.Turns[t].Order:
			did = m.writeCall(c)
		default:
			did = m.writeTurn(t)
		}
		if did == waits {
			return
		}
	}
}

// fate is what became of a line that was to be written.
type fate int

const (
	waits   fate = iota // there is no room for it
	written             // it is on its way
	refused             // it never can be written
)

// writeCall writes the call at i. One that never can be is over.
func (m *Routing) writeCall(i int) fate {
	c := &m.Calls[i]
	line, err := protocol.AppendControlRequest(nil, c.ID, c.Body)
	if err == nil {
		err = m.write(line, FromHost)
	}
	switch {
	case err == nil:
		c.Written = true
		m.Facts.Changed = m.Facts.Changed || !c.Own && !c.Setup && changes(c.Subtype)
		return written
	case errors.Is(err, session.ErrNoRoom) || errors.Is(err, session.ErrTransportClosed):
		return waits
	}
	gone := m.takeCall(i)
	m.callOver(&gone, nil, fmt.Errorf("control request %s: %w", gone.Subtype, err))
	return refused
}

// writeTurn is writeCall for the user message at i.
func (m *Routing) writeTurn(i int) fate {
	t := &m.Turns[i]
	if m.goesOn(t) {
		return written
	}
	line := t.Line
	if t.Out != nil {
		line = t.Out
	}
	switch err := m.write(line, FromHost); {
	case err == nil:
		if !m.cfg.Recovers {
			t.Line = nil
		}
		m.enter(t, TurnWritten)
		m.resent(t)
		return written
	case errors.Is(err, session.ErrTooLarge):
		m.turnOver(t, fmt.Errorf("user message %s of %d bytes: %w", t.ID, len(t.Line), err))
		return refused
	}
	return waits
}
