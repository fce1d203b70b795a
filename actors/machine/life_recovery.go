package machine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/session"
)

// RecoveryConfig is what the options and the dialect say about the death of a process.
type RecoveryConfig struct {
	Restarts   int           // how many processes may follow others within Window
	Equal      int           // how many equal deaths in a row are one too many; zero: no number is
	Window     time.Duration // zero: the life of the session
	ResetAfter time.Duration // how long a process must have been ready for the backoff to begin anew
	Policy     session.Recovery
	Asks       bool // the user's function decides
	// Stored: the options name a session that exists.
	Stored bool
	// Branch is the message at which the options cut the history that the session resumes;
	// "": they do not.
	Branch string
	// Reads: the agent's transcripts can be read.
	Reads bool
	// Unknown is in what an agent says that does not find the session it is to resume;
	// "": it says nothing.
	Unknown string
}

// Deaths is what a life knows of the processes that have died.
type Deaths struct {
	Restarts []time.Time // within the window
	Attempts int         // since a process was last healthy
	ReadyAt  time.Time   // when the present process was ready; zero: not yet
	Last     string      // what the last one was like
	Equal    int         // how many in a row were like it, with no result between them
	Stored   bool        // the agent has stored the session: a result has come
	Fresh    bool        // the present process was to begin the session, and not to resume it
}

// LapseStep is how far a recovery has come.
type LapseStep int

// Steps of a recovery, in order.
const (
	LapseParting LapseStep = iota // the routing lets go of the process
	LapseReading                  // the agent's transcript is read
	LapseAsking                   // the user's function decides
	LapseDrawing                  // the delay is drawn
	LapseWaiting                  // for the delay to pass, and for something to do
	LapseHeld                     // the next process waits to be admitted
)

// Lapse is the time between two processes.
type Lapse struct {
	Step    LapseStep
	From    session.State
	Why     Fault
	Parted  Parted           // what the routing has said
	Policy  session.Recovery // once it is decided
	Passive bool             // the process was not needed
	Fresh   bool             // the agent does not know the session: it begins it, under the same id
	Doubted bool             // the last process was to begin it, and did not come up
	History History          // what the agent has stored
	Due     time.Time        // of the next process, in LapseWaiting; of the answer, in LapseReading
}

// failure describes the lapse to the user.
func (l *Life) death() session.Death {
	lapse, deaths := l.s.Lapse, &l.s.Deaths
	p := &lapse.Parted
	return session.Death{
		State: lapse.From, Err: lapse.Why.Err, Attempt: deaths.Attempts, Equal: deaths.Equal, SessionID: p.SessionID,
		Messages: slices.Clone(p.Messages), Tools: slices.Clone(p.Tools), Gates: p.Gates, Lost: p.Wanted.lost(&lapse.History),
	}
}

// recovers reports whether another process takes the place of the one that has ended:
// it was in use, or itself such a process, nothing of it is left, its login holds, and the
// options say what the next one has to be.
func (l *Life) recovers() bool {
	s := &l.s
	inUse := s.Phase >= session.StateReady && s.Phase <= session.StateAwaitingConsumer
	begins := s.Phase == session.StateRecovering || s.Phase == session.StateStarting || s.Phase == session.StateInitializing
	if !inUse && (s.Gen == 1 || !begins) {
		return false
	}
	expired := l.cfg.AuthExpired != 0 && s.Link.Exit.Code == l.cfg.AuthExpired
	return !s.Over && !expired && s.Link.Err.Err == nil && s.Link.Leftover.Err == nil && l.forbidden() == ""
}

// forbidden is why the deaths before this one leave no room for another process; "":
// they do.
func (l *Life) forbidden() string {
	s, c := &l.s, &l.cfg.Recovery
	switch {
	case l.unknown() && l.stored():
		return "the agent does not find its session any more"
	case c.Restarts == 0:
		return "MaxRestarts is 0"
	case s.Routing.Changed:
		return "a call may have changed what the options say, with which the next process would start"
	case l.unknown(): // it costs no restart to begin it
		return ""
	case len(l.recent()) >= c.Restarts && c.Window > 0:
		return fmt.Sprintf("the agent died more than %s within %v (MaxRestarts, RestartWindow)", times(c.Restarts), c.Window)
	case len(l.recent()) >= c.Restarts:
		return fmt.Sprintf("the agent died more than %s (MaxRestarts)", times(c.Restarts))
	case c.Equal > 0 && l.equal() >= c.Equal:
		return fmt.Sprintf("the agent died alike %d times in a row, with no result between (EqualDeaths)", c.Equal)
	}
	return ""
}

// recent is when other processes have followed, within the window.
func (l *Life) recent() []time.Time {
	all, window := l.s.Deaths.Restarts, l.cfg.Recovery.Window
	if window <= 0 {
		return all
	}
	i := slices.IndexFunc(all, func(at time.Time) bool { return l.now.Sub(at) <= window })
	if i < 0 {
		return nil
	}
	return all[i:]
}

// equal is how many deaths in a row are like this one, with no result between them.
func (l *Life) equal() int {
	switch s := &l.s; {
	case !s.Routing.ResultAt.IsZero():
		return 0
	case s.Deaths.Last != l.kindOfDeath():
		return 1
	}
	return l.s.Deaths.Equal + 1
}

// kindOfDeath is equal for equal deaths.
func (l *Life) kindOfDeath() string {
	return fmt.Sprintf("%v %v %s", l.s.Link.Exit, l.s.Routing.Initialized, l.s.Routing.Failure)
}

// unknown reports whether a process has ended because it did not find the session that
// it was to resume.
func (l *Life) unknown() bool {
	s, text := &l.s, l.cfg.Recovery.Unknown
	return text != "" && s.Gen > 1 && !s.Deaths.Fresh && !s.Routing.Initialized &&
		(strings.Contains(s.Routing.Failure, text) || strings.Contains(s.Link.Stderr, text))
}

// stored reports whether the agent must have the session.
func (l *Life) stored() bool { return l.cfg.Recovery.Stored || l.s.Deaths.Stored }

// recover has the routing let go of a process that has ended.
func (l *Life) recover() {
	s, d := &l.s, &l.s.Deaths
	why := l.exitReason()
	succeeded := !s.Routing.ResultAt.IsZero() && s.Routing.Initialized
	fresh := l.unknown()
	if !fresh {
		if succeeded || d.Last != l.kindOfDeath() {
			d.Equal = 0
		}
		d.Last, d.Equal = l.kindOfDeath(), d.Equal+1
		if !d.ReadyAt.IsZero() && l.now.Sub(d.ReadyAt) >= l.cfg.Recovery.ResetAfter {
			d.Attempts = 0
		}
		d.Attempts++
		d.Restarts = append(slices.Clone(l.recent()), l.now)
	}
	l.judge(l.outcomeOf(why), why)
	d.Stored = d.Stored || succeeded
	d.ReadyAt = time.Time{}
	s.Lapse, s.Rest = &Lapse{From: s.Phase, Why: Fault{why}, Fresh: fresh, Doubted: d.Fresh && !s.Routing.Initialized}, Awake
	l.passivateOver(&session.PassivateError{Problem: "its agent has ended by itself"})
	l.enter(session.StateRecovering, why.Error())
	l.tell(Lost{Gen: s.Gen, Reason: why})
}

// parted takes what the process had been given.
func (l *Life) parted(in Parted) {
	s := &l.s
	if s.Lapse == nil || s.Lapse.Step != LapseParting || in.Gen != s.Gen || s.Close != NotClosing {
		return
	}
	s.Lapse.Parted = in
	if s.Lapse.Passive {
		s.Lapse.Step, s.Lapse.Due = LapseWaiting, l.now
		return
	}
	l.read()
}

// settlePolicy decides what becomes of the messages that the process had been given.
func (l *Life) settlePolicy() {
	s := &l.s
	if l.cfg.Recovery.Asks && !s.Lapse.Fresh {
		s.Lapse.Step = LapseAsking
		l.do(Ask{Gen: s.Gen, Death: l.death()})
		return
	}
	l.apply(l.cfg.Recovery.Policy)
}

// decided takes the decision of the user's function.
func (l *Life) decided(in Decided) {
	s := &l.s
	if s.Lapse == nil || s.Lapse.Step != LapseAsking || in.Gen != s.Gen || s.Close != NotClosing {
		return
	}
	err := in.Err
	if err == nil && !in.Policy.Known() {
		err = fmt.Errorf("DecideRecovery returned %q, which is no policy", string(in.Policy))
	}
	if err != nil {
		l.close(&session.RecoveryError{Problem: err.Error(), Err: errors.Join(s.Lapse.Why.Err, err)})
		return
	}
	l.apply(in.Policy)
}

// apply carries out a decision.
func (l *Life) apply(policy session.Recovery) {
	s := &l.s
	s.Lapse.Policy = policy
	if policy == session.RecoverFail {
		l.close(s.Lapse.Why.Err)
		return
	}
	s.Lapse.Step = LapseDrawing
	l.tell(Verdict{Gen: s.Gen, Policy: policy, Reason: s.Lapse.Why.Err, History: s.Lapse.History})
	l.do(Draw{Gen: s.Gen, Attempt: s.Deaths.Attempts})
}

// drawn begins the delay before the next process.
func (l *Life) drawn(in Drawn) {
	s := &l.s
	if s.Lapse == nil || s.Lapse.Step != LapseDrawing || in.Gen != s.Gen || s.Close != NotClosing {
		return
	}
	s.Lapse.Step, s.Lapse.Due = LapseWaiting, l.now.Add(in.Delay)
	l.do(Emit{&session.Recovering{Death: l.death(), Policy: s.Lapse.Policy, Backoff: in.Delay}})
}

// launchDue is when the next process is to be launched, or the transcript is waited for no
// longer; zero: once there is something for the process to do.
func (l *Life) launchDue() time.Time {
	lapse := l.s.Lapse
	if lapse.Step == LapseReading || lapse.Step == LapseWaiting && l.current() && l.s.Routing.Waiting {
		return lapse.Due
	}
	return time.Time{}
}

func (l *Life) launchWhenDue() {
	if due := l.launchDue(); due.IsZero() || l.now.Before(due) {
		return
	}
	if l.s.Lapse.Step == LapseReading {
		l.settlePolicy() // without it
		return
	}
	l.s.Lapse.Step = LapseHeld
	l.ask(l.launchNext)
}

// launchNext launches the process that follows another one.
func (l *Life) launchNext() {
	lapse := l.s.Lapse
	next := Launch{Resume: lapse.Parted.SessionID, Fresh: l.begins()}
	if lapse.Passive {
		l.enter(session.StateStarting, "")
		if !l.s.Deaths.Stored { // there is nothing to resume but what the options say
			next = Launch{}
		}
	}
	if branch := l.cfg.Recovery.Branch; branch != "" && next.Resume != "" {
		next.At = cmp.Or(lapse.Parted.Leaf, branch)
	}
	l.s.Deaths.Fresh = next.Fresh
	l.launch(next)
}

// endReason is why a session ends whose process has ended.
func (l *Life) endReason() error {
	err := l.exitReason()
	if _, expired := errors.AsType[*session.AuthError](err); expired {
		return err
	}
	if some := l.cfg.Recovery.Restarts > 0; some && l.s.Phase >= session.StateReady || l.s.Gen > 1 && (some || l.unknown()) {
		if problem := l.forbidden(); problem != "" {
			return &session.RecoveryError{Problem: problem, Err: err}
		}
	}
	return err
}

// exitReason describes an unexpected end of the agent.
func (l *Life) exitReason() error {
	s, link := &l.s, &l.s.Link
	if link.Err.Err != nil && link.Exit == (session.ExitStatus{}) {
		return link.Err.Err // it never ran
	}
	e := &session.ExitError{Program: l.cfg.Program, Status: link.Exit, During: "idle", StderrTail: Tail(link.Stderr), StdoutTail: Tail(link.Noise)}
	switch {
	case !s.Routing.Initialized:
		e.During = "initialize"
	case s.Routing.Running:
		e.During = "a turn"
	}
	e.LastResult, e.LadderStep = s.Routing.Failure, ladderStep(link)
	if l.cfg.AuthExpired != 0 && link.Exit.Code == l.cfg.AuthExpired {
		l.tell(AuthLost{Reason: e.Error()})
		return &session.AuthError{Backend: l.cfg.Backend, Err: e}
	}
	if link.Err.Err != nil {
		return errors.Join(e, link.Err.Err)
	}
	return e
}

// times is a number of deaths in words.
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
