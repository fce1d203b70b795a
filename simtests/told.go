package simtests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/session"
)

// deaths is what a session has told of the deaths of its agent.
type deaths struct {
	exits  []agent.Exit // of the processes so far
	was    string       // the state before it recovered
	due    time.Time    // of the next process
	lapse  *session.Recovering
	resent []string // messages of lapse of which it has told what became
}

// hears checks an event of the program's session against the agent's history.
func (p *program) hears(r session.EventRecord) {
	p.w.mu.Lock()
	wrong := p.told.wrong(p, r)
	p.w.mu.Unlock()
	if wrong != "" {
		p.w.Errorf("told: session %s: %T: %s", r.Session, r.Event, wrong)
	}
}

// wrong is what is wrong with an event, or "".
func (t *deaths) wrong(p *program, r session.EventRecord) string {
	switch e := r.Event.(type) {
	case *session.StateChanged:
		if e.To == session.StateRecovering.String() {
			t.was = e.From
		}
	case *session.Recovering:
		return t.recovering(r.At, e)
	case *session.Recovered:
		return t.recovered(e)
	case *session.Ended:
		return t.died(e.Reason)
	case *session.TurnStalled:
		if e.Limit <= 0 || e.Idle < e.Limit {
			return fmt.Sprintf("after %v, and the limit is %v", e.Idle, e.Limit)
		}
	case *session.OversizeLine:
		if e.Length <= int64(e.Ceiling) || p.maxLine > 0 && e.Ceiling != p.maxLine {
			return fmt.Sprintf("%d bytes, and the limit is %d", e.Length, e.Ceiling)
		}
	case *session.MessagesDropped:
		if e.Count < 1 || e.Bytes < 1 {
			return "nothing was dropped"
		}
	case *session.CallbackFailed:
		if e.Err == nil || e.Kind == "" || e.Name == "" {
			return fmt.Sprintf("the callback %q of kind %q failed with %v", e.Name, e.Kind, e.Err)
		}
	case *session.ActorFailed:
		if e.Reason == nil {
			return "without a reason"
		}
	case *session.NoiseLine:
		if e.Err == nil {
			return "without an error"
		}
	}
	return ""
}

// recovering takes the death of a process. The next one comes no sooner than it says.
func (t *deaths) recovering(at time.Time, e *session.Recovering) string {
	t.lapse, t.resent, t.due = e, nil, at.Add(e.Backoff)
	f := &e.Death
	switch {
	case f.State.String() != t.was:
		return fmt.Sprintf("it was %s when its agent died, and was %s", f.State, t.was)
	case f.Attempt < 1 || e.Backoff < 0 || !e.Policy.Known():
		return fmt.Sprintf("attempt %d, policy %q, in %v", f.Attempt, e.Policy, e.Backoff)
	case f.Err == nil:
		return "its agent died of nothing"
	}
	return t.died(f.Err)
}

// recovered takes what became of a message that was under way.
func (t *deaths) recovered(e *session.Recovered) string {
	switch {
	case t.lapse == nil:
		return "its agent has not died"
	case e.Message == "":
	case slices.Contains(t.resent, e.Message):
		return "the message " + e.Message + " has a second outcome"
	}
	t.resent = append(t.resent, e.Message)
	return ""
}

// died holds the status in an error against those of the processes.
func (t *deaths) died(reason error) string {
	e, ok := errors.AsType[*session.ExitError](reason)
	if !ok || slices.ContainsFunc(t.exits, func(x agent.Exit) bool {
		if x.Signal != "" {
			return e.Status.Signal == "SIG"+x.Signal
		}
		return e.Status.Signal == "" && e.Status.Code == x.Code
	}) {
		return ""
	}
	return fmt.Sprintf("the agent ended with %v, and its processes with %v", e.Status, t.exits)
}

// exits notes the end of a process; mu is held.
func (p *program) exits(x agent.Exit) { p.told.exits = append(p.told.exits, x) }

// soon reports how much too soon a process starts; mu is held.
func (p *program) soon() time.Duration { return p.told.due.Sub(p.w.sched.Now()) }

// shown holds what the runtime shows of sessions that wait for their users against what they
// do: nothing.
func (w *World) shown() {
	for _, s := range w.rt.Sessions() {
		if s.State() != session.StateReady {
			continue
		}
		t := s.Tree(context.Background())
		if t.Partial {
			continue
		}
		if len(t.Waits) > 0 {
			w.Errorf("shown: session %s is ready, and waits for %v", t.ID, t.Waits)
		}
		for _, a := range t.Actors {
			never := a.Restarts == 0 && strings.HasSuffix(a.Name, "#1") // an actor that is restarted with another may fail while it stops
			if a.State != "running" || a.Depth != 0 || a.LastFailure != "" && never {
				w.Errorf("shown: session %s has the actor %+v", t.ID, a)
			}
		}
		if !strings.HasPrefix(t.Transport, "up") {
			w.Errorf("shown: session %s is ready, and its transport is %q", t.ID, t.Transport)
		}
	}
	if t := w.rt.Tree(context.Background()); len(t.Sessions) == 0 && t.LargeLines != 0 {
		w.Errorf("shown: no session is left, and lines of %d bytes are", t.LargeLines)
	}
}
