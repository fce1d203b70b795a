package simtests

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// sound checks the failure of an actor against the faults: Troupe's own actors fail only
// because the world killed them. Children of the user may fail. It returns what is wrong,
// or "".
func (w *World) sound(e supervisor.Event) string {
	failed, ok := e.(*supervisor.ChildFailed)
	if ok && failed.Reason == nil {
		return fmt.Sprintf("sound: %s of %s failed for no reason", failed.Child, failed.Supervisor)
	}
	if !ok || w.users[failed.Child] || w.meant(failed.Reason) {
		return ""
	}
	return fmt.Sprintf("sound: %s of %s failed by itself: %v", failed.Child, failed.Supervisor, failed.Reason)
}

// meant reports whether a failure is the world's or that of a child of the user's; mu is
// held.
func (w *World) meant(reason error) bool {
	switch e := reason.(type) { //nolint:errorlint // each level of the chain is looked at
	case *kernel.Killed:
		return true
	case *supervisor.Failure:
		return w.users[e.Child] || slices.ContainsFunc(e.Unwrap(), w.meant)
	case interface{ Unwrap() error }:
		return w.meant(e.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), w.meant)
	}
	return false
}

// paced holds the restarts of a supervisor against the delays that it has announced, and
// returns what is wrong, or "".
func (s *watched) paced(e supervisor.Event) string {
	if s.due == nil {
		s.due = make(map[string]time.Time)
	}
	switch e := e.(type) {
	case *supervisor.ChildFailed: // what was below it is gone with its plans
		if strings.HasPrefix(e.Supervisor, "fleet/") {
			clear(s.due)
		}
		s.forget(e.Supervisor + "/" + e.Child)
	case *supervisor.RestartScheduled:
		for _, child := range e.Children {
			s.due[e.Supervisor+" "+child] = e.At.Add(e.Delay)
		}
	case *supervisor.Restarted:
		for _, child := range e.Children {
			if due := s.due[e.Supervisor+" "+child]; e.At.Before(due) {
				return fmt.Sprintf("backoff: %s restarted %s %v before the time that it had announced", e.Supervisor, child, due.Sub(e.At))
			}
			s.forget(e.Supervisor + "/" + child)
		}
	}
	return ""
}

// forget drops the plans of a supervisor that is gone.
func (s *watched) forget(id string) {
	maps.DeleteFunc(s.due, func(which string, _ time.Time) bool { return strings.HasPrefix(which, id+" ") })
}

// began notes that an incarnation of an actor starts.
func (w *World) began(lane string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	parent, name, below := cutLast(lane, "/")
	child, n, _ := strings.Cut(name, "#")
	if id, _, _ := strings.Cut(parent, "#"); below && n != "1" {
		w.again[id+" "+child]++
	}
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return "", s, false
}

// announced takes note of what a supervisor decides about restarts; mu is held.
func (w *World) announced(id string, e supervisor.Event) {
	switch e := e.(type) {
	case *supervisor.RestartScheduled:
		w.delays += e.Delay
	case *supervisor.Restarted:
		for _, child := range e.Children {
			w.again[id+" "+child]--
		}
	}
}

// unannounced looks for actors that were started again although no supervisor had decided
// it, such as one that is stopping.
func (w *World) unannounced() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, which := range sortedKeys(w.again) {
		id, child, _ := strings.Cut(which, " ")
		of, _, _ := strings.Cut(id, "/")
		if n := w.again[which]; n > 0 && w.sessions[of] != nil { // else its events are not seen
			w.failures = append(w.failures, fmt.Sprintf("intensity: %s of session %s was started again %d times more than its supervisor decided", child, id, n))
		}
	}
}

// settled holds the credit of the sessions that wait for their users against what is unread.
// Nothing is under way when it is called.
func (w *World) settled() {
	for _, s := range w.rt.Sessions() {
		if st := s.State(); st != session.StateReady && st != session.StateAwaitingConsumer {
			continue
		}
		t := s.Tree(context.Background())
		if t.Partial {
			continue
		}
		if t.CreditMessages != t.Unread+t.CreditOwedMessages || t.CreditBytes != t.UnreadBytes+t.CreditOwedBytes {
			w.Errorf("credit: session %s has %d messages and %d bytes of credit out; %d and %d are unread, and %d and %d read and owed",
				t.ID, t.CreditMessages, t.CreditBytes, t.Unread, t.UnreadBytes, t.CreditOwedMessages, t.CreditOwedBytes)
		}
	}
}

// crowded holds a process that starts against the limits of the runtime.
func (w *World) crowded(f *faulty) {
	w.mu.Lock()
	w.ports = append(w.ports, f)
	ports := slices.Clone(w.ports)
	w.mu.Unlock()
	living := 0
	for _, p := range ports {
		if p.alive() {
			living++
		}
	}
	if most := w.admission.MaxProcesses; most > 0 && living > most && w.c.Level == Simulated {
		w.Errorf("bounded: %d agents run at once, and Admission.MaxProcesses is %d", living, most)
	}
	if most := w.admission.MaxSessions; most > 0 {
		if stat := w.rt.AdmissionStat(); stat.Live > most {
			w.Errorf("bounded: %d sessions are admitted at once, and Admission.MaxSessions is %d", stat.Live, most)
		}
	}
}

// hasty holds the sessions that are admitted in one step against Admission.StartsPerSecond,
// which is reached after eight starts, from a quarter of it on.
func (w *World) hasty() {
	if w.admission.StartsPerSecond == 0 {
		return
	}
	was, now := w.admitted, w.sched.Now()
	if w.admitted = w.rt.AdmissionStat().Admitted; w.admitted == was {
		return
	}
	if w.admitted > was+1 || now.Before(w.soonest) {
		w.Errorf("bounded: session %d is admitted %v too soon for %v starts per second", w.admitted, w.soonest.Sub(now), w.admission.StartsPerSecond)
	}
	rate := w.admission.StartsPerSecond * min(1, 0.25+0.75*float64(was)/8)
	w.soonest = now.Add(time.Duration(float64(time.Second) / rate))
}

// roomy looks for places that are not given back when no session is left.
func (w *World) roomy() {
	if s := w.rt.AdmissionStat(); s.Live != 0 || s.Queued != 0 || s.Processes != 0 || s.ProcessesQueued != 0 {
		w.Errorf("bounded: no session is left, and the runtime counts %d sessions, %d that wait, %d processes and %d that wait", s.Live, s.Queued, s.Processes, s.ProcessesQueued)
	}
}

// noRoom reports whether sessions wait for room that others have. A session that needs its
// process for nothing has to make room.
func (w *World) noRoom() bool {
	s, limit := w.rt.AdmissionStat(), w.admission
	if s.Queued > 0 && s.Live < limit.MaxSessions {
		w.Errorf("liveness: %d sessions wait to be admitted, and %d of %d are", s.Queued, s.Live, limit.MaxSessions)
	}
	if s.ProcessesQueued > 0 && s.Processes < limit.MaxProcesses {
		w.Errorf("liveness: %d sessions wait for a process, and %d of %d have one", s.ProcessesQueued, s.Processes, limit.MaxProcesses)
	}
	if s.ProcessesQueued > 0 {
		for _, other := range w.rt.Sessions() {
			if other.State() == session.StateReady {
				w.Errorf("liveness: session %s is idle, and %d sessions wait for a process", other.ID(), s.ProcessesQueued)
			}
		}
	}
	return s.Queued > 0 || s.ProcessesQueued > 0
}
