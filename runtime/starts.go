package runtime

import (
	"cmp"
	"errors"
	"strings"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/internal/breaker"
	"github.com/agent-troupe/troupe/session"
)

// starts has the processes of one session pass the breaker of their provider, if they have
// one, then that of their program, and then wait for a place, if these are limited. It
// implements [actors.Starts]. The lock of the breakers guards the fields after the empty
// line; the lock of the admission may be taken under it.
type starts struct {
	of       *breakers
	session  *Session
	program  breakerKey
	provider breakerKey // zero: none
	place    *place     // of its processes; nil without a limit

	gen        int // the process that was asked for last
	wakes      int // how many processes were asked for to wake a passivated session
	woke       int // and the last of them
	ask        breaker.Ask
	atProvider bool   // its breaker was asked last
	probe      uint64 // the id of the start at the provider's; 0: it is over
	id         uint64 // and at the program's
}

// programKey identifies the program of a session's agent.
func (s *Session) programKey(spec *Spec, c *session.Command) breakerKey {
	key := breakerKey{kind: session.BreakerAgent, name: c.Path}
	if key.name == "" && len(c.Names) > 0 {
		key.name = c.Names[0]
	}
	key.name = cmp.Or(key.name, spec.Dialect.Name())
	// A value that cannot be compared is a separate program for each session, as is one that
	// was made for it. The key is the session's id then: a breaker outlives its sessions, and
	// must not keep them.
	switch {
	case spec.Options.Spawner != nil:
		key.of = identity(spec.Options.Spawner, s.id)
	case spec.ProgramPlace != "":
		key.of = spec.ProgramPlace
	case spec.NewProgram != nil:
		key.of = s.id
		key.name += " in memory"
	case spec.Program != nil:
		key.of = identity(spec.Program, s.id)
		key.name += " in memory"
	default:
		place := strings.Join(c.Interpreter, " ")
		if c.Path == "" {
			place += " in " + lookupEnv(c.Env, "PATH")
		}
		key.of = place
	}
	return key
}

// Ask implements [actors.Starts].
func (s *starts) Ask(ask machine.AskStart) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.dropProbe()
	if ask.Wakes && ask.Gen != s.woke && ask.Gen > 1 {
		s.woke = ask.Gen
		s.wakes++
	}
	s.gen, s.ask = ask.Gen, breaker.Ask{Again: ask.Gen > 1 && !ask.Wakes, Patient: ask.Gen > 1}
	if s.provider == (breakerKey{}) {
		s.askProgram()
		return
	}
	s.atProvider = true
	s.probe = s.of.ask(s.provider, s.ask, s)
}

func (s *starts) askProgram() {
	s.atProvider = false
	s.id = s.of.ask(s.program, s.ask, s)
}

// restarts is how many of the session's processes took the place of one that had ended
// unplanned; gen is the process that runs, or that ran last.
func (s *starts) restarts(gen int) int {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	wakes := s.wakes
	if s.woke > gen { // it waits for its place
		wakes--
	}
	return max(gen-1-wakes, 0)
}

// dropProbe says that nothing more is to be learnt of the provider from the start.
func (s *starts) dropProbe() {
	if s.probe != 0 {
		s.of.drop(s.provider, s.probe)
		s.probe = 0
	}
}

// Over implements [actors.Starts].
func (s *starts) Over(over machine.StartOver) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if over.Gen != s.gen {
		return
	}
	if s.place != nil && over.Outcome == machine.StartUndecided {
		s.forgo()
	}
	if over.Outcome != machine.StartSucceeded {
		s.dropProbe() // else a result will say
	}
	if s.id == 0 {
		return
	}
	outcome := over.Outcome
	if _, taken := errors.AsType[*session.LeaseError](over.Err); taken { // that says nothing of the program
		outcome = machine.StartUndecided
	}
	switch outcome {
	case machine.StartSucceeded:
		s.of.step(s.program, breaker.Done{ID: s.id, Succeeded: "the agent of session " + s.session.id + " has started"})
	case machine.StartFailed:
		s.of.step(s.program, breaker.Done{ID: s.id, Failure: failureLine(over.Err)})
	case machine.StartUndecided:
		s.of.drop(s.program, s.id)
	}
	s.id = 0
}

// forgo gives up the place of a process that will not be there. A session that recovers keeps
// its place only until another one waits for it, as before it asked.
func (s *starts) forgo() {
	admission := s.session.rt.admission
	_, waits := admission.waits(s.place)
	switch state := s.session.core.State(); {
	case waits || state == session.StatePassivated:
		admission.vacate(s.place)
	case state == session.StateRecovering:
		admission.died(s.place)
	}
}

// entered follows the states of the session.
func (s *starts) entered(state string) {
	switch {
	case s.place == nil:
	case state == session.StatePassivated.String():
		s.session.rt.admission.vacate(s.place)
	case state == session.StateRecovering.String():
		s.session.rt.admission.died(s.place)
	case state == session.StateReady.String():
		s.session.rt.admission.idle(s.place)
	}
}

// Forget implements [actors.Starts].
func (s *starts) Forget() {
	if s.place != nil {
		s.session.rt.admission.retire(s.place)
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.dropProbe()
	if s.id != 0 {
		s.of.drop(s.program, s.id)
		s.id = 0
	}
}

func (s *starts) granted(uint64) {
	if s.atProvider {
		s.askProgram()
		return
	}
	gen := s.gen
	granted := func() { s.session.core.Granted(gen) }
	if s.place == nil {
		granted()
		return
	}
	s.session.rt.admission.occupy(s.place, granted)
}

func (s *starts) refused(err *session.BreakerOpenError) {
	s.session.rt.counts.refused.Add(1)
	if !s.atProvider {
		s.dropProbe()
	}
	s.session.core.Refused(s.gen, err)
}

func (s *starts) held(key breakerKey, why string) {
	s.session.emit(&session.StartHeld{Kind: key.kind, Name: key.name, Why: why})
}

// wait is what the start of the session's agent waits for; false: it does not wait.
func (s *starts) wait() (session.Wait, bool) {
	if s.place != nil {
		if since, waits := s.session.rt.admission.waits(s.place); waits {
			what := "place for the agent's process (Admission.MaxProcesses or MaxSpawned)"
			return session.Wait{What: what, Age: s.of.clock.Now().Sub(since), Since: since}, true
		}
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	key, id := s.program, s.id
	if s.atProvider {
		key, id = s.provider, s.probe
	}
	now := s.of.clock.Now()
	g := s.of.all[key]
	if g == nil {
		return session.Wait{}, false
	}
	why, since, ok := g.Why(now, id)
	if !ok {
		return session.Wait{}, false
	}
	return session.Wait{What: "start of the agent: " + why, Age: now.Sub(since), Since: since}, true
}

// maxReason is the most characters of the text of a failure that a breaker keeps.
const maxReason = 200

// short makes a text one line that is not too long.
func short(text string) string {
	text = shown.Line(text)
	if r := []rune(text); len(r) > maxReason {
		text = string(r[:maxReason-1]) + "…"
	}
	return text
}
