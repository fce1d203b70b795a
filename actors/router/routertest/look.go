package routertest

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
func (l *Ledger) Snapshot() Snapshot {
	unread, bytes := l.Unread()
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Snapshot{
		SessionID: l.SessionID(), Unread: unread, UnreadBytes: bytes, Stalled: l.box.Routing().Told.Stalled,
		OpenTurns: len(l.box.Routing().Turns), BackgroundTasks: len(l.box.Routing().Facts.Tasks),
	}
	for _, w := range l.box.Routing().Waits(l.cfg.Clock.Now()) {
		s.Waits = append(s.Waits, w.Wait)
	}
	return s
}

// Told is the summary that the session was told last.
func (l *Ledger) Told() machine.Summary {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.box.Routing().Told == nil {
		return machine.Summary{}
	}
	return *l.box.Routing().Told
}

// Gates is the number of requests that wait for a person.
func (l *Ledger) Gates() int { return l.Told().Gates }

// Unanswered is the number of requests that wait.
func (l *Ledger) Unanswered() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.box.Routing().Open()
}

// Running reports whether a turn is under way.
func (l *Ledger) Running() bool { return l.Told().Running }

// InFlight reports whether the agent is at work on a turn.
func (l *Ledger) InFlight() bool { return l.Told().InFlight }

// Busy reports whether the agent has anything to do.
func (l *Ledger) Busy() bool { told := l.Told(); return told.Busy() }

// Stalled reports whether the reader waits for the consumer.
func (l *Ledger) Stalled() bool { return l.Told().Stalled }

// StalledFor is for how long it has.
func (l *Ledger) StalledFor() time.Duration {
	if told := l.Told(); told.Stalled {
		return l.cfg.Clock.Now().Sub(told.StalledAt)
	}
	return 0
}

// Drained reports whether all output of the agent was handled, or never will be.
func (l *Ledger) Drained() bool { return l.Broken() != nil || l.Told().Drained }

// SettingUp reports whether the session waits for a call of its own.
func (l *Ledger) SettingUp() bool { return l.Told().SettingUp }

// LastFailure is what the last result said if it was an error.
func (l *Ledger) LastFailure() string { return l.Told().Failure }

// InitFailure is why the agent cannot be used, or nil.
func (l *Ledger) InitFailure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// GatesOff is why the agent must not go on, or nil.
func (l *Ledger) GatesOff() error {
	if seen := l.Told().GatesOff; seen != "" {
		return &session.GatesOffError{Seen: seen}
	}
	return nil
}

// BackgroundTasks lists those that live.
func (l *Ledger) BackgroundTasks() []protocol.BackgroundTask {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.box.Routing().LiveTasks()
}

// AuthExpired is the exit of an agent whose login has expired.
func (l *Ledger) AuthExpired(reason string) { l.Tell(machine.AuthLost{Reason: reason}) }
