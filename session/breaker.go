package session

import (
	"fmt"
	"log/slog"
	"time"
)

// BreakerKind is what a breaker of a runtime protects.
type BreakerKind string

// The kinds of breakers. See runtime.Breakers for what trips each of them and what it
// holds back.
const (
	BreakerAgent     BreakerKind = "agent"      // starts of one agent program
	BreakerProvider  BreakerKind = "provider"   // the model's API behind the agents
	BreakerMCPServer BreakerKind = "mcp_server" // calls of one in-process MCP server
)

// BreakerState is the state of a breaker.
type BreakerState string

// The states of a breaker.
const (
	BreakerClosed   BreakerState = "closed"    // everything passes
	BreakerOpen     BreakerState = "open"      // nothing passes until the cool-down is over
	BreakerHalfOpen BreakerState = "half_open" // one probe passes, and its outcome decides
)

// BreakerOpenError says that a breaker of the runtime did not let something pass, because
// the last attempts had failed. Nothing was started. The same call may succeed later.
type BreakerOpenError struct {
	Kind        BreakerKind   // what it protects
	Name        string        // the program, the provider or the server
	Since       time.Time     // when the breaker opened, by the runtime's clock
	Failures    int           // how many attempts in a row had failed
	LastFailure string        // what the last of them was, in one line
	RetryAfter  time.Duration // until the next probe; 0: a probe is under way
}

func (e *BreakerOpenError) Error() string {
	next := "a probe is under way"
	if e.RetryAfter > 0 {
		next = fmt.Sprintf("next probe in %v", e.RetryAfter.Round(time.Millisecond))
	}
	return fmt.Sprintf("the breaker of %s is open since %s (failures in a row: %d; %s); last failure: %s",
		breakerName(e.Kind, e.Name), e.Since.Format(time.RFC3339), e.Failures, next, e.LastFailure)
}

// breakerName names what a breaker protects.
func breakerName(kind BreakerKind, name string) string {
	switch kind {
	case BreakerMCPServer:
		return "MCP server " + name
	case BreakerProvider:
		return "provider " + name
	}
	return "agent " + name
}

// BreakerOpened says that a breaker of the runtime has opened: the attempts before have
// failed, or a probe has. It is an event of the runtime, of no session.
type BreakerOpened struct {
	Kind     BreakerKind   // what it protects
	Name     string        // the program, the provider or the server
	Failures int           // how many attempts in a row have failed
	Reason   string        // what the last failure was, in one line
	CoolDown time.Duration // until the next probe
	Held     int           // how many starts wait for the breaker
}

// BreakerHalfOpened says that a breaker lets a probe pass. It is an event of the runtime,
// of no session.
type BreakerHalfOpened struct {
	Kind BreakerKind // what it protects
	Name string      // the program, the provider or the server
	Held int         // how many starts wait for the outcome
}

// BreakerReclosed says that a breaker lets everything pass again. It is an event of the
// runtime, of no session.
type BreakerReclosed struct {
	Kind   BreakerKind   // what it protects
	Name   string        // the program, the provider or the server
	Open   time.Duration // how long it was open, with its probes
	Held   int           // how many starts waited for it
	Reason string        // what has succeeded
}

// StartHeld says that a session waits until the runtime lets it start its agent. The
// next [StateChanged] says that it has started.
type StartHeld struct {
	Kind BreakerKind // what it protects
	Name string      // the program or the provider
	Why  string      // what it waits for
}

func (*BreakerOpened) isEvent()     {}
func (*BreakerHalfOpened) isEvent() {}
func (*BreakerReclosed) isEvent()   {}
func (*StartHeld) isEvent()         {}

// Level implements [Event].
func (*BreakerOpened) Level() slog.Level { return slog.LevelWarn }

// Level implements [Event].
func (*BreakerHalfOpened) Level() slog.Level { return slog.LevelInfo }

// Level implements [Event].
func (*BreakerReclosed) Level() slog.Level { return slog.LevelInfo }

// Level implements [Event].
func (*StartHeld) Level() slog.Level { return slog.LevelInfo }

func (e *BreakerOpened) String() string {
	return fmt.Sprintf("breaker of %s opened (failures in a row: %d; next probe in %v; starts that wait: %d); last failure: %s",
		breakerName(e.Kind, e.Name), e.Failures, e.CoolDown.Round(time.Millisecond), e.Held, e.Reason)
}

func (e *BreakerHalfOpened) String() string {
	return fmt.Sprintf("breaker of %s half open: a probe passes; starts that wait: %d", breakerName(e.Kind, e.Name), e.Held)
}

func (e *BreakerReclosed) String() string {
	return fmt.Sprintf("breaker of %s closed after %v: %s; starts that waited: %d",
		breakerName(e.Kind, e.Name), e.Open.Round(time.Millisecond), e.Reason, e.Held)
}

func (e *StartHeld) String() string {
	return fmt.Sprintf("start of %s waits: %s", breakerName(e.Kind, e.Name), e.Why)
}

// LogValue implements [slog.LogValuer].
func (e *BreakerOpened) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue implements [slog.LogValuer].
func (e *BreakerHalfOpened) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue implements [slog.LogValuer].
func (e *BreakerReclosed) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue implements [slog.LogValuer].
func (e *StartHeld) LogValue() slog.Value { return slog.StringValue(e.String()) }
