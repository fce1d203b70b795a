package machine

import (
	"errors"
	"strings"

	"github.com/agent-troupe/troupe/session"
)

// Admission is how far the start of a process has come, for those who limit the starts of
// all sessions.
type Admission struct {
	Asked  int // the process that waits to be admitted; 0: none
	Judged int // the process that was admitted and has come to no outcome; 0: none
}

type (
	// AskStart asks whether process Gen may be started; [Granted] or [Refused] is the
	// answer. Wakes: the one before was passivated. To: the runtime.
	AskStart struct {
		Gen   int
		Wakes bool
	}

	// StartOver says what became of the start of process Gen, which was asked for. To: the
	// runtime.
	StartOver struct {
		Gen     int
		Outcome StartOutcome
		Err     error // of one that failed
	}

	// Granted lets process Gen start. From: the runtime.
	Granted struct{ Gen int }

	// Refused says that it will not be started. From: the runtime.
	Refused struct {
		Gen int
		Err error
	}
)

func (AskStart) effect()   {}
func (StartOver) effect()  {}
func (Granted) ToSession() {}
func (Refused) ToSession() {}

// StartOutcome is what a start says about the program of the agent.
type StartOutcome int

// Outcomes of a start.
const (
	StartUndecided StartOutcome = iota // nothing: it was given up, or failed for reasons of its session
	StartSucceeded                     // it works: it has answered
	StartFailed                        // it did not come up
)

// ask asks for the next process, if starts are limited.
func (l *Life) ask(launch func()) {
	if !l.cfg.Admission {
		launch()
		return
	}
	l.s.Admission.Asked = l.s.Gen + 1
	l.do(AskStart{Gen: l.s.Gen + 1, Wakes: l.s.Lapse != nil && l.s.Lapse.Passive})
}

// granted launches the process that was asked for.
func (l *Life) granted(gen int) {
	s := &l.s
	if s.Admission.Asked != gen || s.Close != NotClosing {
		return // it was given up, and the runtime was notified
	}
	s.Admission = Admission{Judged: gen}
	switch {
	case s.Lapse == nil:
		l.begin()
	case l.current() && s.Routing.Waiting:
		l.launchNext()
	default: // there is nothing to do any more
		s.Lapse.Step = LapseWaiting
		l.judge(StartUndecided, nil)
	}
}

func (l *Life) refused(in Refused) {
	if l.s.Admission.Asked == in.Gen && in.Gen > 0 {
		l.s.Admission.Asked = 0
		l.close(in.Err)
	}
}

// judge says, once, what became of the start of the present process.
func (l *Life) judge(outcome StartOutcome, err error) {
	if a := &l.s.Admission; a.Judged > 0 {
		if outcome != StartFailed {
			err = nil
		}
		l.do(StartOver{a.Judged, outcome, err})
		a.Judged = 0
	}
}

// forgoStart gives up a start because the session ends. reason is why it ends.
func (l *Life) forgoStart(reason error) {
	if a := &l.s.Admission; a.Asked > 0 {
		l.do(StartOver{Gen: a.Asked})
		a.Asked = 0
	}
	l.judge(l.outcomeOf(reason), reason)
}

// ofSession is a failed start that may have its cause in the session, such as its
// directory, and not in the program.
type ofSession interface {
	error
	OfSession() bool
}

// outcomeOf is the outcome of a start that ended before the agent was ready. A cause
// that only this session has says nothing about the program.
func (l *Life) outcomeOf(reason error) StartOutcome {
	var (
		auth    *session.AuthError
		control *session.ControlError
		exit    *session.ExitError
		start   *session.StartError
		timeout *session.TimeoutError
	)
	switch {
	case reason == nil, errors.As(reason, &auth):
		return StartUndecided
	case errors.As(reason, &control):
		return StartSucceeded
	case errors.As(reason, &exit):
		if text := l.cfg.Recovery.Unknown; text != "" && strings.Contains(exit.StderrTail+exit.LastResult, text) {
			return StartUndecided // it does not know the session
		}
		return StartFailed
	case errors.As(reason, &start):
		if own, ok := errors.AsType[ofSession](reason); ok && own.OfSession() {
			return StartUndecided
		}
		return StartFailed
	case errors.As(reason, &timeout):
		return StartFailed
	}
	return StartUndecided
}
