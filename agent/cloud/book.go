package cloud

import (
	"slices"
	"time"
)

// stage is how far a message has come.
type stage int

const (
	queued  stage = iota // it surely has not arrived
	posting              // its request is under way
	unclear              // its request failed, and it may have arrived
	posted               // it arrived
)

// message is a user message without a result.
type message struct {
	uuid, text string
	stage      stage
	since      int       // number of the last event before it was posted
	at         time.Time // when it was first posted
	attempts   int       // to post it
	turnID     string    // as the cloud said; "": it did not
	turn       *turn     // nil: no event of it has come
	problem    error     // why it is unclear
	quiet      time.Time // the session was idle and nothing of the turn has come: it ends then; zero: it is not awaited
	stray      *turn     // that was idle
	told       int       // the connection that has told the host of its turn
}

// How long the book waits before it takes a session that is idle for the end of a turn whose own
// end did not come.
const (
	strayLimit = 30 * time.Second // the end had another turn id, or none
	foldLimit  = 2 * time.Second  // the end was that of a later message's turn
)

const (
	maxTurns    = 64   // kept turns that belong to no message
	maxUserTurn = 64   // user messages of the cloud's that are kept while a message is unclear
	maxIDs      = 4096 // ids of events and of turns that are remembered
)

// book matches the events of the cloud with the user's messages. It does no I/O and has no clock.
type book struct {
	open   []*message // in the order in which the user sent them
	turns  []*turn    // of which events have come, oldest first
	ended  ids        // of turns that have a result
	closed ids        // uuids of messages that have a result
	events int        // events so far
	said   []said     // user messages that the cloud has shown
	idle   mark       // the last time that the session was idle
	gone   mark       // the last time that the session was terminated
	spent  spent
}

// mark is an event about the session.
type mark struct {
	number int   // of the event; 0 without one
	turn   *turn // whose event it was
}

// said is a user.message event.
type said struct {
	turnID, text string
	number       int
}

// ids is a set that forgets the oldest.
type ids struct {
	set   map[string]bool
	order []string
}

func (s *ids) has(id string) bool { return s.set[id] }

func (s *ids) add(id string) {
	if s.set[id] {
		return
	}
	if s.set == nil {
		s.set = make(map[string]bool)
	}
	if len(s.order) == maxIDs {
		delete(s.set, s.order[0])
		s.order = s.order[1:]
	}
	s.set[id] = true
	s.order = append(s.order, id)
}

// message is the open message with that uuid, or nil.
func (b *book) message(uuid string) *message {
	for _, m := range b.open {
		if m.uuid == uuid {
			return m
		}
	}
	return nil
}

// next is the oldest message that was not posted, or nil. No message is posted while the fate
// of the one before it is unknown.
func (b *book) next() *message {
	for _, m := range b.open {
		if m.stage == posted {
			continue
		}
		if m.stage == queued {
			return m
		}
		return nil
	}
	return nil
}

// running are the messages on which the cloud may be at work.
func (b *book) running() []*message {
	var some []*message
	for _, m := range b.open {
		if m.stage != queued {
			some = append(some, m)
		}
	}
	return some
}

// drop removes the messages that were not posted and returns them.
func (b *book) drop() []*message {
	var dropped []*message
	b.open = slices.DeleteFunc(b.open, func(m *message) bool {
		if m.stage == queued {
			dropped = append(dropped, m)
		}
		return m.stage == queued
	})
	return dropped
}

// begin notes that a message is being posted.
func (b *book) begin(m *message, now time.Time) {
	m.stage, m.since = posting, b.events
	if m.attempts++; m.attempts == 1 {
		m.at = now
	}
	b.turns = slices.DeleteFunc(b.turns, func(t *turn) bool { return t.id == "" && b.owner(t) == nil }) // older than the message
}

// arrived notes that a message has arrived. The turn id may be empty. Events of the turn may have
// come before the cloud said so.
func (b *book) arrived(m *message, turnID string, now time.Time) {
	m.stage, m.turnID, m.problem = posted, turnID, nil
	b.match()
	if b.gone.number > m.since {
		b.failOpen(b.gone.turn)
	}
	if b.idle.number > m.since && m.turn == nil {
		m.quiet = now.Add(strayLimit)
		if b.owner(b.idle.turn) == nil && !b.ended.has(b.idle.turn.id) {
			m.stray = b.idle.turn
		}
	}
}

// owner is the message whose turn it is, or nil.
func (b *book) owner(t *turn) *message {
	for _, m := range b.open {
		if m.turn == t || m.turnID != "" && m.turnID == t.id {
			return m
		}
	}
	return nil
}

// turnOf is the turn of that id, made if it is new.
func (b *book) turnOf(id string) *turn {
	for _, t := range b.turns {
		if t.id == id {
			return t
		}
	}
	t := &turn{id: id, born: b.events}
	b.turns = append(b.turns, t)
	if free := slices.IndexFunc(b.turns, func(t *turn) bool { return b.owner(t) == nil }); len(b.turns) > maxTurns && free >= 0 && b.turns[free] != t {
		b.turns = slices.Delete(b.turns, free, free+1)
	}
	return t
}

// take takes an event.
func (b *book) take(name string, d *eventData, now time.Time) {
	b.events++
	if name == eventUserMessage {
		b.said = append(b.said, said{d.TurnID, textOf(d.Content), b.events})
		b.said = b.said[max(0, len(b.said)-maxUserTurn):]
	}
	if b.ended.has(d.TurnID) {
		return // late
	}
	t := b.turnOf(d.TurnID)
	t.take(name, d)
	b.match()
	if m := b.owner(t); m != nil {
		m.quiet, m.stray = time.Time{}, nil
	}
	switch {
	case t.idle && name == eventIdle:
		b.idle = mark{b.events, t}
		b.noteIdle(t, now)
	case name == eventTerminated || name == eventStatusTerminated:
		b.gone = mark{b.events, t}
		b.failOpen(t)
	case name == eventError && b.owner(t) == nil && t.id == "":
		b.failOldest(t)
	}
	b.confirm(now)
}

// match gives messages their turns: the one of their id, or, for a message without an id, the
// first that began after it was posted and belongs to no message.
func (b *book) match() {
	for _, m := range b.open {
		if m.turn != nil || m.stage != posted {
			continue
		}
		for _, t := range b.turns {
			if m.turnID != "" && t.id == m.turnID || m.turnID == "" && t.born > m.since && b.owner(t) == nil {
				m.turn = t
				break
			}
		}
	}
}

// failOpen ends all messages that the cloud has: the session was terminated.
func (b *book) failOpen(t *turn) {
	for _, m := range b.open {
		m.failWith(t)
	}
}

// failOldest ends the oldest message that the cloud has: an error names no turn.
func (b *book) failOldest(t *turn) {
	for _, m := range b.open {
		if m.failWith(t) {
			return
		}
	}
}

// failWith ends a message with the failure of a turn that is not its own.
func (m *message) failWith(t *turn) bool {
	if m.stage != posted || m.turn.over() {
		return false
	}
	if m.turn == nil {
		m.turn = &turn{id: m.turnID, born: t.born}
	}
	m.turn.failure = t.failure
	return true
}

// noteIdle notes for messages whose own end has not come that the session is idle.
func (b *book) noteIdle(t *turn, now time.Time) {
	at := slices.IndexFunc(b.open, func(m *message) bool { return m.turn == t })
	for i, m := range b.open {
		if m.stage != posted || m.turn.over() {
			continue
		}
		switch {
		case at > i: // a later message's turn has ended
			m.quiet, m.stray = now.Add(foldLimit), nil
		case at >= 0 && m.turn == nil: // an earlier one's, which may have taken this message up
			m.quiet, m.stray = now.Add(strayLimit), nil
		case at < 0 && (m.turn == nil || t.id == ""): // belongs to no message
			m.quiet, m.stray = now.Add(strayLimit), t
		}
	}
}

// confirm looks for the messages that may have arrived among those that the cloud has shown.
func (b *book) confirm(now time.Time) {
	for _, m := range b.open {
		if m.stage != unclear {
			continue
		}
		for _, s := range b.said {
			taken := slices.ContainsFunc(b.open, func(o *message) bool { return o != m && o.turnID != "" && o.turnID == s.turnID })
			if s.number > m.since && s.text == m.text && !taken && !b.ended.has(s.turnID) {
				b.arrived(m, s.turnID, now)
				break
			}
		}
	}
}

// wake is when pop has a message although no event comes; zero: never.
func (b *book) wake() time.Time {
	if len(b.open) == 0 || b.open[0].stage != posted {
		return time.Time{}
	}
	return b.open[0].quiet
}

// pop removes the oldest message if it is over and returns it with its turn. Results come in the
// order of the messages.
func (b *book) pop(now time.Time) (*message, *turn) {
	if len(b.open) == 0 {
		return nil, nil
	}
	m := b.open[0]
	t := m.turn
	expired := !m.quiet.IsZero() && !now.Before(m.quiet)
	if m.stage != posted || !t.over() && !expired {
		return nil, nil
	}
	if t == nil {
		t = m.stray
	}
	b.close(m, t)
	return m, t
}

// close removes a message that gets its result now.
func (b *book) close(m *message, t *turn) {
	b.open = slices.DeleteFunc(b.open, func(o *message) bool { return o == m })
	b.turns = slices.DeleteFunc(b.turns, func(o *turn) bool { return o == t })
	b.closed.add(m.uuid)
	for _, id := range []string{m.turnID, idOf(t)} {
		if id != "" {
			b.ended.add(id)
		}
	}
	b.spent.add(t)
}

func idOf(t *turn) string {
	if t == nil {
		return ""
	}
	return t.id
}
