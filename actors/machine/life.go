package machine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/session"
)

// LifeConfig is constant and no part of a snapshot.
type LifeConfig struct {
	Backend        string // its name, for errors
	Program        string // what is started, for errors
	InterruptGrace time.Duration
	FlushGrace     time.Duration // zero: nothing is flushed before the end of stdin
	Consumer       time.Duration // Limits.Consumer; zero: none
	// Interrupt is the call that stops a turn; nil: the agent knows none.
	Interrupt *Called
	Recovery  RecoveryConfig
	// PassivateAfter is how long a session may be idle until its process goes; zero: for
	// any time.
	PassivateAfter time.Duration
	// Transient: no other process could resume the session.
	Transient bool
	// AuthExpired is the exit code of an agent whose login has expired; 0: none is.
	AuthExpired int
	// Start is how long the start of a process may take; zero: any time.
	Start time.Duration
	// Admission: each process has to be admitted before it is launched.
	Admission bool
}

// Close is how far the end of a session has come, before its process has ended.
type Close int

// Steps of a close, in order. A turn that the agent starts meanwhile is interrupted, too.
const (
	NotClosing   Close = iota
	Asked              // the routing is to turn new work away
	Settling           // a turn may follow a background task that has just ended
	Interrupting       // a turn that runs is to stop
	Flushing           // what the agent wants before the end of its stdin
	Denying            // what is still asked is denied
	Climbing           // the close ladder
)

// LifeState is everything that a life knows: plain data.
type LifeState struct {
	Phase   session.State
	Gen     int      // of the process; 0: none yet
	Sent    uint64   // the number of the last input that the routing was sent
	Routing *Summary // its last summary, or nil
	Link    Link     // what the transport said last
	Broken  Fault    // why the routing is not trusted
	Failed  Fault    // why the agent cannot be used

	Admission Admission
	Launched  time.Time // when the present process was launched
	Lapse     *Lapse    // a process has died, and another one follows, or nil
	Deaths    Deaths

	Rest       RestStep
	RestWanted bool      // the user waits for the outcome
	RestAt     time.Time // when to look again whether the process is needed

	Close    Close
	Reason   Fault     // of the close; nil: the user's wish
	Until    time.Time // when the interrupt has had its time
	Stage    Stage     // with which the ladder begins
	Killed   bool      // the agent is killed because something is not trusted
	Stopping bool      // the actors have to stop
	Over     bool      // they are gone
	Tick     time.Time // the timer that is set; zero: none
}

// Life is what becomes of a session from its start to its end, as a value. It decides
// nothing on a summary that is older than what it last told the routing.
type Life struct {
	s   LifeState
	cfg LifeConfig
	now time.Time
	out []Effect
}

// NewLife returns the life of a session that has not begun.
func NewLife(cfg LifeConfig) *Life { return RestoreLife(LifeState{}, cfg) }

// RestoreLife returns a life that continues from a snapshot.
func RestoreLife(s LifeState, cfg LifeConfig) *Life {
	if s.Routing == nil {
		s.Routing = &Summary{}
	}
	return &Life{s: s.clone(), cfg: cfg}
}

// Snapshot returns what the life knows, which shares nothing that a later step changes.
func (l *Life) Snapshot() LifeState { return l.s.clone() }

func (s LifeState) clone() LifeState {
	if s.Lapse != nil {
		lapse := *s.Lapse
		s.Lapse = &lapse
	}
	s.Deaths.Restarts = slices.Clone(s.Deaths.Restarts)
	return s
}

// Stopping reports whether the actors have to stop.
func (l *Life) Stopping() bool { return l.s.Stopping }

// Step handles one input and appends its effects to out, in order.
func (l *Life) Step(now time.Time, in LifeInput, out []Effect) []Effect {
	l.now, l.out = now, out
	if !l.s.Phase.Terminal() {
		l.handle(in)
		l.review()
		l.setTick()
	}
	out, l.out = l.out, nil
	return out
}

func (l *Life) do(e Effect) { l.out = append(l.out, e) }

func (l *Life) handle(in LifeInput) {
	s := &l.s
	switch in := in.(type) {
	case Began:
		if s.Phase == session.StateAdmitting && s.Admission == (Admission{}) {
			l.ask(l.begin)
		}
	case Granted:
		l.granted(in.Gen)
	case Refused:
		l.refused(in)
	case Linked:
		// One that is closed before it was admitted ends without ever having been launched.
		if (in.Link.Gen == s.Gen || s.Gen == 0) && in.Link.Phase >= s.Link.Phase {
			s.Link = in.Link
		}
	case Changed:
		s.Routing = in.Summary
	case Unusable:
		if s.Failed.Err == nil {
			s.Failed = Fault{withTails(in)}
		}
	case Broken:
		if s.Broken.Err == nil {
			s.Broken = Fault(in)
		}
	case Parted:
		l.parted(in)
	case HistoryRead:
		l.historyRead(in)
	case Decided:
		l.decided(in)
	case Drawn:
		l.drawn(in)
	case PassivateAsked:
		l.passivateAsked()
	case Rested:
		l.rested(in)
	case CloseAsked:
		l.close(nil)
	case ActorsOver:
		s.Over = true
		if !s.Stopping && in.Err != nil {
			l.close(in.Err)
		}
	case Tick:
		s.Tick = time.Time{}
	}
}

// begin launches the first process.
func (l *Life) begin() {
	l.enter(session.StateStarting, "")
	l.launch(Launch{})
}

// launch asks for the next process.
func (l *Life) launch(next Launch) {
	s := &l.s
	s.Gen++
	s.Lapse, s.Link, s.Launched = nil, Link{Gen: s.Gen}, l.now
	next.Gen = s.Gen
	l.do(next)
}

// tell gives the routing an input.
func (l *Life) tell(in Input) {
	l.s.Sent++
	l.do(Tell{Told{N: l.s.Sent, In: in}})
}

// current reports whether the summary covers all inputs that the routing was sent.
func (l *Life) current() bool { return l.s.Routing.Heard == l.s.Sent }

func (l *Life) enter(to session.State, why string) {
	from := l.s.Phase
	if from == to {
		return
	}
	if !Legal(from, to) {
		panic(&session.IllegalTransitionError{From: from, To: to})
	}
	l.s.Phase = to
	if to == session.StateReady && l.cfg.PassivateAfter > 0 {
		l.s.RestAt = l.now.Add(l.cfg.PassivateAfter)
	}
	l.do(Enter{from, to, why})
}

// review derives the next phase from the state, until nothing changes any more. It is
// idempotent.
func (l *Life) review() {
	for before := l.s.place(); ; before = l.s.place() {
		if l.decide(); l.s.Phase.Terminal() || l.s.place() == before {
			return
		}
	}
}

// place is what a decision may change, so that another one follows.
func (s *LifeState) place() [2]int { return [2]int{int(s.Phase), int(s.Close)} }

func (l *Life) decide() {
	s, r := &l.s, l.s.Routing
	if why := l.notTrusted(); why != nil && !s.Killed {
		s.Killed = true
		l.close(why)
		if s.Reason.Err == nil { // the user closes it
			s.Reason = Fault{why}
		}
		l.climb(Killed) // before a tool can run
	}
	switch {
	case s.Link.Phase == Gone:
		l.afterLink()
	case s.Close != NotClosing:
		l.goOnClosing()
	case s.Link.Err.Err != nil:
		l.close(s.Link.Err.Err)
	case s.Failed.Err != nil:
		l.close(s.Failed.Err)
	case !l.startDue().IsZero() && !l.now.Before(l.startDue()):
		l.close(&session.TimeoutError{What: "start of the agent", Limit: l.cfg.Start, SetBy: "Limits.Start"})
	case (s.Phase == session.StateStarting || s.Phase == session.StateRecovering) && s.Link.Phase == Up:
		l.enter(session.StateInitializing, "")
	case s.Phase == session.StateInitializing && r.Initialized && !r.SettingUp && l.current():
		s.Deaths.ReadyAt = l.now
		l.judge(StartSucceeded, nil)
		l.enter(session.StateReady, "")
		l.enterWorking()
	case s.Phase >= session.StateReady && s.Phase <= session.StateAwaitingConsumer:
		if limit := l.cfg.Consumer; limit > 0 && r.Stalled && !l.now.Before(r.StalledAt.Add(limit)) {
			over := &session.TimeoutError{What: "the consumer of the messages", Limit: limit, SetBy: "Limits.Consumer"}
			l.close(fmt.Errorf("%w: %w", session.ErrConsumerStalled, over))
			return
		}
		l.enterWorking()
		l.goOnResting()
	}
}

// notTrusted is why the agent is killed at once, or nil.
func (l *Life) notTrusted() error {
	if l.s.Broken.Err != nil {
		return l.s.Broken.Err
	}
	if seen := l.s.Routing.GatesOff; seen != "" {
		return &session.GatesOffError{Seen: seen}
	}
	return nil
}

// enterWorking enters the state that follows from what the agent and the user do.
func (l *Life) enterWorking() {
	to := session.StateReady
	switch r := l.s.Routing; {
	case r.Gates > 0:
		to = session.StateAwaitingHost
	case r.Stalled:
		to = session.StateAwaitingConsumer
	case r.Running:
		to = session.StateRunning
	}
	l.enter(to, "")
}

// close begins the end of the session. The first reason stands.
func (l *Life) close(reason error) {
	s := &l.s
	if s.Close != NotClosing {
		return
	}
	s.Close, s.Reason = Asked, Fault{reason}
	l.forgoStart(reason)
	why := "closed by the user"
	if reason != nil {
		why = reason.Error()
	}
	l.enter(session.StateClosing, why)
	l.tell(Closing{Reason: reason, Serve: l.orderly() && l.cfg.FlushGrace > 0})
}

// orderly reports whether the session is closed by the user's wish, and was in use.
func (l *Life) orderly() bool { return l.s.Reason.Err == nil && l.s.Routing.Initialized }

// goOnClosing takes the next step of a close. Agents finish the running turn, including
// its tools, after stdin is closed, and start a turn when a background task ends. So both
// are stopped first, and the turn that may follow a task is waited for.
func (l *Life) goOnClosing() {
	s, r := &l.s, l.s.Routing
	if s.Over { // no actor is left to do it step by step
		if s.Stage != Killed {
			s.Close, s.Stage = Climbing, Killed
			l.do(Abort{})
		}
		return
	}
	if s.Close == Climbing || !l.current() {
		return
	}
	switch s.Close {
	case Asked:
		switch {
		case !l.orderly():
			l.deny(s.Reason.Err != nil && (r.Busy() || r.TurnMayFollow()))
		case l.cfg.Interrupt == nil && r.Busy():
			l.deny(false)
		case l.cfg.Interrupt == nil:
			l.flush()
		default:
			s.Close, s.Until = Settling, l.now.Add(l.cfg.InterruptGrace)
		}
	case Settling:
		switch {
		case r.Busy():
			l.tell(Serve{})
			l.tell(*l.cfg.Interrupt)
			s.Close = Interrupting
		case !r.TurnMayFollow(), !l.now.Before(s.Until):
			l.flush()
		}
	case Interrupting:
		switch {
		case !r.Busy():
			s.Close = Settling
		case !l.now.Before(s.Until):
			l.deny(true)
		}
	case Flushing:
		if r.Flushed || s.Link.Err.Err != nil {
			l.deny(false)
		}
	case Denying:
		l.climb(s.Stage)
	}
}

func (l *Life) flush() {
	l.s.Close = Flushing
	l.tell(Flush{Limit: l.cfg.FlushGrace})
}

// deny answers what is still asked, and then takes the ladder, at its second step if
// terminate is set: then a turn is still running and must not see the end of stdin.
func (l *Life) deny(terminate bool) {
	l.s.Close, l.s.Stage = Denying, ClosedStdin
	if terminate {
		l.s.Stage = Terminated
	}
	l.tell(Serve{})
}

func (l *Life) climb(stage Stage) {
	l.s.Close = Climbing
	l.do(Climb{Gen: l.s.Gen, Stage: stage})
}

// afterLink ends the session once everything the agent wrote was delivered.
func (l *Life) afterLink() {
	s := &l.s
	ran := s.Link.Err.Err == nil || s.Link.Exit != (session.ExitStatus{})
	drained := s.Routing.Drained && (s.Routing.Gen == s.Gen || !ran || s.Close != NotClosing)
	if !drained && s.Broken.Err == nil && !s.Over {
		return // the routing reports it
	}
	if s.Close == NotClosing {
		switch {
		case s.Failed.Err != nil:
			l.close(s.Failed.Err)
		case s.Lapse != nil:
			l.launchWhenDue()
			return
		case s.Rest >= RestFlush:
			l.passivated()
			return
		case l.recovers():
			l.recover()
			return
		default:
			l.close(l.endReason())
		}
	}
	if !s.Stopping {
		s.Stopping = true
		l.do(StopActors{s.Reason.Err})
	}
	if !s.Over {
		return
	}
	to := session.StateClosed
	if s.Reason.Err != nil {
		to = session.StateFailed
	}
	l.enter(to, "")
	reason := s.Reason.Err
	if left := s.Link.Leftover.Err; left != nil {
		reason = errors.Join(reason, left)
	}
	l.do(Finish{reason})
}

// startDue is when the present process must run; zero: it does, or may take any time.
func (l *Life) startDue() time.Time {
	s := &l.s
	if l.cfg.Start <= 0 || s.Gen == 0 || s.Lapse != nil || s.Link.Phase >= Up {
		return time.Time{}
	}
	return s.Launched.Add(l.cfg.Start)
}

// setTick asks for a timer if the next deadline is not the one that is set. A step that
// waits for the router needs no timer: the router reports when it has handled its inputs,
// and when it has delivered all output of a process.
func (l *Life) setTick() {
	s, next := &l.s, time.Time{}
	switch {
	case s.Link.Phase == Gone && s.Lapse == nil:
	case (s.Close == Settling || s.Close == Interrupting) && l.current():
		next = s.Until
	case s.Close == NotClosing && s.Lapse != nil:
		next = l.launchDue()
	case s.Close == NotClosing && !l.startDue().IsZero():
		next = l.startDue()
	case s.Close == NotClosing && !l.restDue().IsZero() && l.current():
		next = l.restDue()
	case s.Close == NotClosing && s.Phase == session.StateAwaitingConsumer && l.cfg.Consumer > 0:
		next = s.Routing.StalledAt.Add(l.cfg.Consumer)
	}
	// A timer that comes too early does no harm, and is not replaced for each message
	// that is read.
	switch {
	case next.IsZero() && (s.Phase != session.StateReady || l.cfg.PassivateAfter > 0):
		return
	case next.IsZero(): // an idle session needs none for long; that of the start is left
	case !s.Tick.IsZero() && !next.Before(s.Tick) && s.Close == NotClosing:
		return
	}
	if !next.Equal(s.Tick) {
		s.Tick = next
		l.do(SetTick{next})
	}
}
