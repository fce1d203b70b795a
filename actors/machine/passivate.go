package machine

import (
	"errors"
	"time"

	"github.com/agent-troupe/troupe/session"
)

// rest answers whether the process of the session can go, because it is not needed.
// After a yes, input of the user waits for the next process.
//
// The decision is the routing's: it knows each message and call before any other actor,
// so none can be written to a process that is about to end.
func (m *Routing) rest(in Rest) {
	rested := Rested{Gen: in.Gen, Busy: m.occupied(in.Gen), Active: m.activeAt()}
	if rested.Busy == "" && m.now.Sub(rested.Active) < in.Idle {
		rested.Busy = "it was in use a short time ago"
	}
	m.Resting = rested.Busy == ""
	rested.Soon = m.Facts.AgentRunning && !m.Facts.OwnTurn && len(m.Turns) == 0
	m.do(rested)
}

// occupied is what process gen is needed for; "": nothing.
func (m *Routing) occupied(gen int) string {
	switch {
	case gen != m.Gen || !m.Up || m.Facts.Initialized == nil:
		return "its agent is not ready"
	case m.Closing:
		return "it is closing"
	case len(m.requests) > 0:
		return "a request of the agent is open"
	case m.Running() || len(m.Strays.Kept) > 0:
		return "a turn is open"
	case len(m.Calls) > 0:
		return "a call has no answer yet"
	case len(m.Facts.Tasks) > 0:
		return "a background task runs"
	case !m.Facts.QuietUntil.IsZero():
		return "a background task has just ended, and a turn may follow it"
	case m.Flow.Stalled:
		return "messages wait to be read"
	}
	return ""
}

// asleep reports whether there is no process because it is not needed, and no work for
// one: an interrupt has nothing to stop, and does not start a process.
func (m *Routing) asleep() bool {
	return (m.Resting || !m.Up && m.Recovery.Passive) && len(m.Turns)+len(m.Calls) == 0
}

// activeAt is when the process was last in use: it wrote something.
func (m *Routing) activeAt() time.Time { return m.ReadAt }

// RestStep is how far a session has come with giving up its process.
type RestStep int

// Steps of it, in order.
const (
	Awake     RestStep = iota
	RestAsked          // the routing looks whether the process is needed
	RestFlush          // what the agent wants before the end of its stdin
	RestClimb          // the close ladder
)

// passivateAsked is the user's wish that the process goes.
func (l *Life) passivateAsked() {
	s := &l.s
	switch problem := l.restless(); {
	case s.Close != NotClosing:
		l.do(PassivateOver{session.ErrClosed})
	case s.Phase == session.StatePassivated:
		l.do(PassivateOver{})
	case problem != "":
		l.do(PassivateOver{&session.PassivateError{Problem: problem}})
	case s.Phase < session.StateReady || s.Phase > session.StateAwaitingConsumer:
		l.do(PassivateOver{&session.PassivateError{Problem: "its state is " + s.Phase.String()}})
	default:
		s.RestWanted = true
		if s.Rest == Awake {
			l.askToRest(0)
		}
	}
}

// restless is why another process could not take this one's place; "": it can.
func (l *Life) restless() string {
	switch {
	case l.cfg.Transient:
		return "PersistSession is false, so no process could resume it"
	case l.s.Routing.Changed:
		return "a call may have changed what the options say, with which the next process would start"
	}
	return ""
}

// askAgain continues the user's request once the agent is done with its last turn, which
// it reports some milliseconds after the result.
func (l *Life) askAgain() {
	switch r := l.s.Routing; {
	case r.Turns > 0, r.OwnTurn:
		l.passivateOver(&session.PassivateError{Problem: "a turn is open"})
	case !r.Running:
		l.askToRest(0)
	}
}

func (l *Life) askToRest(idle time.Duration) {
	l.s.Rest = RestAsked
	l.tell(Rest{Gen: l.s.Gen, Idle: idle})
}

// rested takes the routing's answer.
func (l *Life) rested(in Rested) {
	s := &l.s
	if s.Rest != RestAsked || in.Gen != s.Gen || s.Close != NotClosing {
		return
	}
	if in.Busy == "" {
		s.Rest = RestFlush
		l.tell(Flush{Limit: l.cfg.FlushGrace})
		return
	}
	s.Rest = Awake
	if in.Soon && s.RestWanted {
		return // once the agent says that it is done
	}
	if s.RestAt = in.Active.Add(l.cfg.PassivateAfter); !s.RestAt.After(l.now) {
		s.RestAt = l.now.Add(l.cfg.PassivateAfter)
	}
	l.passivateOver(&session.PassivateError{Problem: in.Busy})
}

// goOnResting takes the next step of a session that waits for its user.
func (l *Life) goOnResting() {
	s, r := &l.s, l.s.Routing
	switch s.Rest {
	case Awake:
		if s.RestWanted && l.current() {
			l.askAgain()
			return
		}
		if at := l.restDue(); at.IsZero() || l.now.Before(at) || !l.current() {
			return
		}
		if problem := l.restless(); problem != "" {
			s.RestAt = time.Time{} // it stays so
			l.do(Emit{&session.WarningIssued{Problem: "PassivateAfter: the agent's process stays: " + problem}})
			return
		}
		l.askToRest(l.cfg.PassivateAfter)
	case RestFlush:
		if l.current() && (r.Flushed || s.Link.Err.Err != nil) {
			s.Rest = RestClimb
			l.do(Climb{Gen: s.Gen, Stage: ClosedStdin, Why: "the session was passivated"})
		}
	case RestAsked, RestClimb:
	}
}

// restDue is when an idle session is to give up its process; zero: not by the clock.
func (l *Life) restDue() time.Time {
	if l.cfg.PassivateAfter <= 0 || l.s.Rest != Awake || l.s.Phase != session.StateReady {
		return time.Time{}
	}
	return l.s.RestAt
}

// errPassivated ends what the session itself may still have asked of the process.
var errPassivated = errors.New("the session was passivated, because nobody needed its process")

// passivated begins the time without a process.
func (l *Life) passivated() {
	s, d := &l.s, &l.s.Deaths
	if left := s.Link.Leftover.Err; left != nil {
		l.close(left)
		return
	}
	d.Stored = d.Stored || !s.Routing.ResultAt.IsZero()
	d.ReadyAt = time.Time{}
	s.Rest = Awake
	s.Lapse = &Lapse{From: s.Phase, Passive: true}
	l.enter(session.StatePassivated, "")
	l.tell(Lost{Gen: s.Gen, Reason: errPassivated, Passive: true})
	l.passivateOver(nil)
}

// passivateOver reports the outcome of the request to the user.
func (l *Life) passivateOver(err error) {
	if l.s.RestWanted {
		l.s.RestWanted = false
		l.do(PassivateOver{err})
	}
}
