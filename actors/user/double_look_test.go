package user_test

import (
	"time"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Snapshot is what can be seen at one instant.
type Snapshot struct {
	SessionID       string
	Unread          int
	UnreadBytes     int64
	Stalled         bool
	OpenTurns       int
	BackgroundTasks int
	Waits           []session.Wait
}

// Snapshot describes the session.
func (s *side) Snapshot() Snapshot {
	unread, bytes := s.Unread()
	s.mu.Lock()
	defer s.mu.Unlock()
	out := Snapshot{
		SessionID: s.SessionID(), Unread: unread, UnreadBytes: bytes, Stalled: s.box.Routing().Told.Stalled,
		OpenTurns: len(s.box.Routing().Turns), BackgroundTasks: len(s.box.Routing().Facts.Tasks),
	}
	for _, w := range s.box.Routing().Waits(s.cfg.Clock.Now()) {
		out.Waits = append(out.Waits, w.Wait)
	}
	return out
}

// Told is the summary that the session was told last.
func (s *side) Told() machine.Summary {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.box.Routing().Told == nil {
		return machine.Summary{}
	}
	return *s.box.Routing().Told
}

// Gates is the number of requests that wait for a person.
func (s *side) Gates() int { return s.Told().Gates }

// Unanswered is the number of requests that wait.
func (s *side) Unanswered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.box.Routing().Open()
}

// Running reports whether a turn is under way.
func (s *side) Running() bool { return s.Told().Running }

// InFlight reports whether the agent is at work on a turn.
func (s *side) InFlight() bool { return s.Told().InFlight }

// Busy reports whether the agent has anything to do.
func (s *side) Busy() bool { told := s.Told(); return told.Busy() }

// Stalled reports whether the reader waits for the consumer.
func (s *side) Stalled() bool { return s.Told().Stalled }

// StalledFor is for how long it has.
func (s *side) StalledFor() time.Duration {
	if told := s.Told(); told.Stalled {
		return s.cfg.Clock.Now().Sub(told.StalledAt)
	}
	return 0
}

// Drained reports whether all output of the agent was handled, or never will be.
func (s *side) Drained() bool { return s.Broken() != nil || s.Told().Drained }

// SettingUp reports whether the session waits for a call of its own.
func (s *side) SettingUp() bool { return s.Told().SettingUp }

// LastFailure is what the last result said if it was an error.
func (s *side) LastFailure() string { return s.Told().Failure }

// InitFailure is why the agent cannot be used, or nil.
func (s *side) InitFailure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// BackgroundTasks lists those that live.
func (s *side) BackgroundTasks() []protocol.BackgroundTask {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.box.Routing().LiveTasks()
}
