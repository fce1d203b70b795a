package ledger

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/internal/machine"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Snapshot is the state of a ledger at one instant.
type Snapshot struct {
	SessionID       string
	Unread          int   // messages read from the agent and not consumed
	UnreadBytes     int64 // their bytes
	Stalled         bool  // the reader stands still until they are consumed
	OpenTurns       int
	BackgroundTasks int
	Waits           []session.Wait // the consumer, the agent, requests, calls, background tasks, turns; each oldest first
}

// Snapshot describes the ledger as it is now.
func (l *Ledger) Snapshot() Snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.cfg.Clock.Now()
	m := l.routing
	s := Snapshot{
		SessionID: m.Facts.SessionID, Unread: m.Flow.Held - l.stream.unpaid.Messages, UnreadBytes: m.Flow.Bytes - l.stream.unpaid.Bytes,
		Stalled: m.Flow.Stalled, OpenTurns: len(m.Turns), BackgroundTasks: len(m.Facts.Tasks),
	}
	if m.Flow.Stalled {
		s.Waits = append(s.Waits, session.Wait{What: "consumer", Age: now.Sub(m.Flow.StalledAt), Limit: l.Limits().Consumer})
	}
	if l.readerWaits != "" {
		s.Waits = append(s.Waits, session.Wait{What: l.readerWaits, Age: now.Sub(l.readerSince)})
	}
	for _, r := range l.requests {
		s.Waits = append(s.Waits, session.Wait{
			What: strings.TrimSpace(r.Kind.String() + " request " + r.name), ID: r.ID, Age: now.Sub(r.Opened), Limit: r.limit,
		})
	}
	for i := range m.Calls {
		c := &m.Calls[i]
		s.Waits = append(s.Waits, session.Wait{What: "control request " + c.Subtype, ID: c.ID, Age: now.Sub(c.Opened), Limit: c.Limit})
	}
	if !l.terminal {
		s.Waits = append(s.Waits, l.taskWaits(now)...)
	}
	for i := range m.Turns {
		t := &m.Turns[i]
		s.Waits = append(s.Waits, session.Wait{What: "turn " + t.State.String(), ID: t.ID, Age: now.Sub(t.Opened)})
	}
	return s
}

// taskWaits lists the background tasks that live, oldest first.
func (l *Ledger) taskWaits(now time.Time) []session.Wait {
	var all []session.Wait
	for i := range l.routing.Facts.Tasks {
		t := &l.routing.Facts.Tasks[i]
		all = append(all, session.Wait{What: strings.TrimSpace("background task " + t.Description), ID: t.TaskID, Age: now.Sub(t.Seen)})
	}
	slices.SortStableFunc(all, func(a, b session.Wait) int { return cmp.Compare(b.Age, a.Age) })
	return all
}

// Stalled reports whether the reader stands still for want of a consumer.
func (l *Ledger) Stalled() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.routing.Flow.Stalled
}

// StalledFor is how long nobody has read anything while the reader stands still
// for want of a consumer; zero when it does not.
func (l *Ledger) StalledFor() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.routing.Flow.Stalled {
		return 0
	}
	return l.cfg.Clock.Now().Sub(l.routing.Flow.StalledAt)
}

// Drained reports whether the agent's stdout has ended and every frame of it was
// handled.
func (l *Ledger) Drained() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sum.Drained || l.broken != nil
}

// SettingUp reports whether a call is open without which the session cannot be
// used.
func (l *Ledger) SettingUp() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sum.SettingUp
}

// InitFailure is why the agent cannot be used, or nil.
func (l *Ledger) InitFailure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.routing.Facts.InitFailure.Err
}

// Initialized is the initialize response; nil until it came.
func (l *Ledger) Initialized() json.RawMessage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.routing.Facts.Initialized
}

// SessionID is the agent's own id of the session; "" until it told.
func (l *Ledger) SessionID() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.routing.Facts.SessionID
}

// Capabilities is what the agent says it can do.
func (l *Ledger) Capabilities() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.routing.Facts.Capabilities)
}

// LastFailure is what the latest result said if it was an error, else "".
func (l *Ledger) LastFailure() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.routing.Facts.Failure
}

// GatesOff is why the agent must not go on, or nil: it does not call its hooks.
func (l *Ledger) GatesOff() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if off := l.routing.Facts.GatesOff; off != nil {
		return off
	}
	return nil
}

// WritesLost is what the agent says it could not write: a
// *[session.WritesLostError], or nil.
func (l *Ledger) WritesLost() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lost := l.routing.Facts.WritesLost; lost != nil {
		return lost
	}
	return nil
}

// AuthExpired notes that the login is missing or has expired, and tells it once.
func (l *Ledger) AuthExpired(reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.step(machine.AuthLost{Reason: reason})
}

// BackgroundTasks lists the tasks that live, by their ids.
func (l *Ledger) BackgroundTasks() []protocol.BackgroundTask {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.routing.LiveTasks()
}
