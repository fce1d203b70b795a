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

// sound holds the failure of an actor against the faults: Troupe's own actors fail only
// because the world killed them. What the user's children do is theirs. It returns what is
// wrong, or "".
func (w *World) sound(e supervisor.Event) string {
	failed, ok := e.(*supervisor.ChildFailed)
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
		if n := w.again[which]; n > 0 {
			id, child, _ := strings.Cut(which, " ")
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
