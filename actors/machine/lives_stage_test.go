package machine_test

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/session"
)

// stage is what a life has around it: a routing that answers late, and a process. It knows
// what has happened, for the laws.
type stage struct {
	*rand.Rand
	now  time.Time
	cfg  machine.LifeConfig
	calm bool            // the session lives for long
	sum  machine.Summary // what the routing knows
	told uint64          // the last input that the life sent; sum.Heard is the last one that was confirmed
	link machine.Link    // the process, the last stage of its ladder, and why that was climbed
	// open are the unanswered questions of the life, with the
	// process that each is about.
	open     map[question]int
	granted  int  // the process that was admitted and has not come to an outcome
	verdicts int  // the process whose messages were decided about last
	idle     bool // the last process ended because the session was idle
	broken   bool // nothing is known of the process's output
	over     bool // the actors are gone
	past     map[string]int
}

// question is what the life asks of others.
type question int

const (
	toPart   question = iota // the routing: to let go of a process
	toRead                   // a task: the transcript of a process
	toDecide                 // the user: about a death
	toDraw                   // the Rand seam: the delay of the next process
	toRest                   // the routing: whether the process is needed
	toStart                  // the breakers: whether the process may be started
)

// answered removes the question and returns the process it was about; 0 if it is not open.
func (s *stage) answered(q question) (gen int) {
	gen = s.open[q]
	delete(s.open, q)
	return gen
}

// answers are what the life gets to hear, by the question. Some of it may be nonsense.
var answers = map[question]func(s *stage, gen int) machine.LifeInput{
	toPart: func(_ *stage, gen int) machine.LifeInput { return machine.Parted{Gen: gen, SessionID: "the session"} },
	toRead: func(s *stage, gen int) machine.LifeInput {
		known := s.IntN(4) > 0
		return machine.HistoryRead{Gen: gen, History: machine.History{Known: known, Missing: known && s.IntN(2) == 0}}
	},
	toDecide: func(s *stage, gen int) machine.LifeInput {
		if s.IntN(12) == 0 {
			return machine.Decided{Gen: gen, Err: errors.New("it panicked")}
		}
		all := []session.Recovery{session.RecoverContinue, session.RecoverRerun, session.RecoverReport, session.RecoverReport, session.RecoverFail, ""}
		return machine.Decided{Gen: gen, Policy: all[s.IntN(len(all))]}
	},
	toDraw: func(s *stage, gen int) machine.LifeInput {
		return machine.Drawn{Gen: gen, Delay: time.Duration(s.IntN(3)) * time.Second}
	},
	toRest: func(s *stage, gen int) machine.LifeInput {
		if s.IntN(3) == 0 {
			return machine.Rested{Gen: gen, Busy: "a turn is open", Soon: s.IntN(2) == 0, Active: s.now}
		}
		return machine.Rested{Gen: gen, Active: s.now}
	},
	toStart: func(s *stage, gen int) machine.LifeInput {
		if gen == 1 && s.IntN(8) == 0 {
			return machine.Refused{Gen: gen, Err: &session.BreakerOpenError{Kind: session.BreakerAgent, Name: "agent"}}
		}
		s.granted = gen
		return machine.Granted{Gen: gen}
	},
}

// answer answers the first of the questions that is open; nil: none is.
func (s *stage) answer(of ...question) machine.LifeInput {
	for _, q := range of {
		if gen := s.answered(q); gen > 0 {
			return answers[q](s, gen)
		}
	}
	return nil
}

// changed is a summary, which may be an old one.
func (s *stage) changed() machine.LifeInput {
	if s.sum.Heard < s.told && s.IntN(2) == 0 {
		s.sum.Heard++
	}
	s.sum.Closing = s.sum.Heard > 0
	s.sum.Flushed = s.sum.Flushed || s.sum.Heard > 1 && s.IntN(3) == 0
	s.sum.Drained = s.sum.Drained || s.link.Phase == machine.Gone && s.sum.Gen == s.link.Gen
	sum := s.sum
	return machine.Changed{Summary: &sum}
}

// rarely is whether one of n times is now.
func (s *stage) rarely(n int) bool { return s.IntN(n) == 0 }

// happening is something that may happen to a session. nil: the routing alone has news.
type happening struct {
	name   string
	ends   bool // it ends the session, or may: rare in a calm one
	happen func(s *stage) machine.LifeInput
}

// happenings are equally likely.
var happenings = []happening{
	{"the process goes on", false, func(s *stage) machine.LifeInput {
		if s.link.Gen == 0 || s.link.Phase == machine.Gone {
			return nil
		}
		s.advance()
		s.link.Exit = session.ExitStatus{Code: s.IntN(42)}
		if s.sum.Failure = ""; s.rarely(2) {
			s.sum.Failure = "no such session"
		}
		if s.sum.ResultAt = (time.Time{}); s.rarely(2) {
			s.sum.ResultAt = s.now
		}
		return machine.Linked{Link: s.link}
	}},
	{"the user closes", true, func(s *stage) machine.LifeInput {
		if s.rarely(4) {
			return machine.CloseAsked{}
		}
		return nil
	}},
	{"the agent is of no use", true, func(s *stage) machine.LifeInput {
		if s.rarely(8) {
			return machine.Unusable{Err: &session.TimeoutError{What: "initialize", Limit: time.Second}, Stderr: "why"}
		}
		return nil
	}},
	{"the routing breaks", true, func(s *stage) machine.LifeInput {
		if s.rarely(8) {
			s.broken = true
			return machine.Broken{Err: errors.New("a bug")}
		}
		return nil
	}},
	{"the actors end", true, func(s *stage) machine.LifeInput {
		if s.past["stop"] > 0 {
			s.over = true
			return machine.ActorsOver{}
		}
		if s.rarely(12) {
			s.over = true
			return machine.ActorsOver{Err: errors.New("too many failures")}
		}
		return nil
	}},
	{"the gates are off", true, func(s *stage) machine.LifeInput {
		if s.rarely(10) {
			s.sum.GatesOff = "system/init"
		}
		return nil
	}},
	{"the timer", false, func(*stage) machine.LifeInput { return machine.Tick{} }},
	{"the timer again", false, func(*stage) machine.LifeInput { return machine.Tick{} }},
	{"the agent is ready", false, func(s *stage) machine.LifeInput {
		if s.link.Gen <= 1 || s.rarely(6) { // the others die before as well
			s.sum.Initialized, s.sum.SettingUp = true, s.rarely(4)
		}
		return nil
	}},
	{"a turn begins or ends", false, func(s *stage) machine.LifeInput {
		s.sum.InFlight = s.rarely(2)
		s.sum.Running = s.sum.InFlight
		return nil
	}},
	{"a gate opens or closes", false, func(s *stage) machine.LifeInput { s.sum.Gates = s.IntN(2); return nil }},
	{"the consumer stands still or reads", false, func(s *stage) machine.LifeInput {
		if s.sum.Stalled = s.rarely(2); s.sum.Stalled {
			s.sum.StalledAt = s.now
		}
		return nil
	}},
	{"something is to do, or nothing", false, func(s *stage) machine.LifeInput { s.sum.Waiting = s.rarely(2); return nil }},
	{"the routing lets go", false, func(s *stage) machine.LifeInput { return s.answer(toPart) }},
	{"the death is judged", false, func(s *stage) machine.LifeInput { return s.answer(toRead, toDecide) }},
	{"a delay is drawn", false, func(s *stage) machine.LifeInput { return s.answer(toDraw) }},
	{"the user wants no process", false, func(s *stage) machine.LifeInput {
		if s.rarely(4) {
			s.past["passivate"]++
			return machine.PassivateAsked{}
		}
		return nil
	}},
	{"whether it is needed", false, func(s *stage) machine.LifeInput { return s.answer(toRest) }},
	{"news of the routing", false, func(*stage) machine.LifeInput { return nil }},
}

// advance has the process take its next step.
func (s *stage) advance() {
	if s.link.Phase++; s.link.Phase == machine.Up {
		s.sum.Gen, s.sum.Drained = s.link.Gen, false
	}
}

// input draws what happens next.
func (s *stage) input() machine.LifeInput {
	h := happenings[s.IntN(len(happenings))]
	switch {
	case s.open[toStart] > 0 && s.rarely(4):
		return s.answer(toStart)
	case s.calm && h.ends && s.past["stop"] == 0 && s.IntN(100) > 0:
		h = happenings[0]
	case s.calm && s.open[toPart] > 0:
		return s.answer(toPart)
	}
	if in := h.happen(s); in != nil {
		return in
	}
	return s.changed()
}

// towardsTheEnd is what comes when the session is to end and everybody does their part.
func (s *stage) towardsTheEnd() machine.LifeInput {
	switch {
	case s.rarely(3):
		return machine.CloseAsked{}
	case s.past["stop"] > 0 && !s.over:
		s.over = true
		return machine.ActorsOver{}
	case s.rarely(3):
		return machine.Tick{}
	case (s.link.Stage > 0 || s.past["abort"] > 0) && s.link.Phase < machine.Gone:
		s.advance()
		return machine.Linked{Link: s.link}
	}
	if in := s.answer(toPart, toRead, toDecide, toDraw); in != nil {
		return in
	}
	s.sum.Heard, s.sum.Flushed = s.told, true
	return s.changed()
}
