package ledger

import (
	"strings"
	"time"
)

// Snapshot is the state of a ledger at one instant.
type Snapshot struct {
	SessionID       string
	Unread          int   // messages read from the agent and not consumed
	UnreadBytes     int64 // their bytes
	Stalled         bool  // the reader stands still until they are consumed
	OpenTurns       int
	BackgroundTasks int
	Waits           []Wait // the consumer, the agent, requests, calls, background tasks, turns; each oldest first
}

// Stalled reports whether the reader stands still for want of a consumer.
func (l *Ledger) Stalled() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stream.stalled
}

// StalledFor is how long nobody has read anything while the reader stands still
// for want of a consumer; zero when it does not.
func (l *Ledger) StalledFor() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.stream.stalled {
		return 0
	}
	return l.cfg.Clock.Now().Sub(l.stream.stalledAt)
}

// Snapshot describes the ledger as it is now.
func (l *Ledger) Snapshot() Snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.cfg.Clock.Now()
	s := Snapshot{
		SessionID: l.facts.sessionID, Unread: l.stream.held, UnreadBytes: l.stream.heldBytes,
		Stalled: l.stream.stalled, OpenTurns: len(l.turns.open), BackgroundTasks: len(l.facts.tasks),
	}
	if l.stream.stalled {
		s.Waits = append(s.Waits, Wait{What: "consumer", Age: now.Sub(l.stream.stalledAt), Limit: l.cfg.Limits.Consumer})
	}
	if l.readerWaits != "" {
		s.Waits = append(s.Waits, Wait{What: l.readerWaits, Age: now.Sub(l.readerSince)})
	}
	for _, r := range l.openRequests(anyKind) {
		s.Waits = append(s.Waits, Wait{
			What: strings.TrimSpace(r.Kind.String() + " request " + r.name), ID: r.ID, Age: now.Sub(r.Opened), Limit: r.limit,
		})
	}
	for _, c := range l.calls.inOrder() {
		s.Waits = append(s.Waits, Wait{What: "control request " + c.Subtype, ID: c.ID, Age: now.Sub(c.Opened), Limit: c.Limit})
	}
	if !l.terminal {
		s.Waits = append(s.Waits, l.taskWaits(now)...)
	}
	for _, t := range l.turns.open {
		s.Waits = append(s.Waits, Wait{What: "turn " + t.state.String(), ID: t.UUID, Age: now.Sub(t.Opened)})
	}
	return s
}
