package runtime

import (
	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/session"
)

// Outline returns the sessions that have not ended as [SessionTree] has them, without questions to
// their actors: without Actors, Credit, RSS and all Waits but the first, which says less. It is for
// tables of many sessions that are read each second. They are sorted by id.
func (rt *Runtime) Outline() []SessionTree {
	all := rt.Sessions()
	rows := make([]SessionTree, len(all))
	for i, s := range all {
		rows[i] = s.Outline()
	}
	return rows
}

// Ended returns the sessions that have ended last, as [Tree] has them.
func (rt *Runtime) Ended() []SessionTree { return rt.ended() }

// Outline returns the session as [Runtime.Outline] has it.
func (s *Session) Outline() SessionTree {
	t := s.outline()
	link, limits := s.core.Link().Status(), s.core.User.Limits()
	t.At, t.Restarts, t.Transport = s.rt.sys.Clock().Now(), s.starts.restarts(link.Gen), link.Phase.String()
	t.UnreadLimit, t.UnreadBytesLimit = limits.Messages, limits.Bytes
	t.Unread, t.UnreadBytes = s.core.User.Unread()
	if link.Phase < machine.Gone {
		t.PID = link.PID
	}
	turn := s.core.TurnNow()
	t.Turn, t.TurnSince = turn.N, turn.Since
	w := session.Wait{Since: t.StateSince}
	switch t.State {
	case session.StateAwaitingHost:
		w.What = "a person"
	case session.StateAwaitingConsumer:
		w.What, w.Limit, w.SetBy = "consumer", limits.Consumer, "Limits.Consumer"
		if at := s.core.User.Stalled(); !at.IsZero() {
			w.Since = at
		}
	case session.StateRunning:
		if w.What = "turn running"; !turn.Since.IsZero() {
			w.Since = turn.Since
		}
	case session.StateStarting:
		w.What, w.Limit, w.SetBy = "start of the agent", max(limits.Start, 0), "Limits.Start"
	case session.StateReady:
		return t
	default:
		held, waits := s.starts.wait()
		if !waits {
			return t
		}
		w = held
	}
	w.Age = t.At.Sub(w.Since)
	t.Waits = append(t.Waits, w)
	return t
}

// Steered reports that a person has done something from outside of the program. The id is that of
// the session it is about, or "". It returns the number of the event's record, which is 0 if the
// session has ended. Package inspect/ui calls it for each change that it makes.
func (rt *Runtime) Steered(id, by, action string) (seq uint64) {
	e := &session.Steered{By: by, Action: action}
	if id == "" {
		return rt.bus.publish(session.EventRecord{At: rt.sys.Clock().Now(), Event: e})
	}
	s := rt.Session(id)
	if s == nil {
		return 0
	}
	r := session.EventRecord{Session: id, At: rt.sys.Clock().Now(), Event: e}
	s.emitting.Lock()
	defer s.emitting.Unlock()
	if s.ended {
		s.rt.bus.record(r)
		return 0
	}
	s.mark(&r)
	seq = s.publish(r)
	if s.events != nil {
		s.events.push(r)
	}
	return seq
}
