package session

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/base/shown"
)

// MirrorPending says that the agent has given a result while some of what it stored before
// is not in Options.SessionStore yet. [Mirrored] or [MirrorFailed] follows. The result is
// not held back for it.
type MirrorPending struct {
	Entries int // how many wait
}

func (*MirrorPending) isEvent() {}

// Level implements [Event].
func (*MirrorPending) Level() slog.Level { return slog.LevelDebug }

func (e *MirrorPending) String() string {
	return fmt.Sprintf("a result is not in the session store yet: %s %s", shown.Count(e.Entries, "entry"), shown.Verb(e.Entries, "waits", "wait"))
}

// LogValue implements [slog.LogValuer].
func (e *MirrorPending) LogValue() slog.Value { return slog.StringValue(e.String()) }

// Mirrored says that everything which the agent has reported so far is in
// Options.SessionStore, but for what a [MirrorFailed] has named.
type Mirrored struct {
	Entries int // how many were appended since the last one
	// Unreported is how many of them were read from the agent's transcript: the agent had
	// stored them, and its process ended before it reported them.
	Unreported int
}

func (*Mirrored) isEvent() {}

// Level implements [Event].
func (*Mirrored) Level() slog.Level { return slog.LevelDebug }

func (e *Mirrored) String() string {
	if e.Unreported > 0 {
		return fmt.Sprintf("%s %s in the session store, %d of them from the agent's transcript", shown.Count(e.Entries, "entry"), shown.Verb(e.Entries, "is", "are"), e.Unreported)
	}
	return fmt.Sprintf("%s %s in the session store", shown.Count(e.Entries, "entry"), shown.Verb(e.Entries, "is", "are"))
}

// LogValue implements [slog.LogValuer].
func (e *Mirrored) LogValue() slog.Value { return slog.StringValue(e.String()) }

// MirrorFailed says that entries of the agent's transcript did not come into Options.SessionStore. The
// session continues. The next process and the end of the session read the missing entries from the
// transcript, and a [Mirrored] follows if they find it. Else the agent's own files have them, as long
// as those exist: transcript.Sessions.Import brings the session into a store. The vendors' SDKs yield a
// system message of subtype mirror_error instead.
type MirrorFailed struct {
	Key     StoreKey // zero: the agent did not say whose they are
	Entries int      // how many were dropped; 0: not known
	Err     error    // a *[StoreError], or [ErrMirrorFull]
}

func (*MirrorFailed) isEvent() {}

// Level implements [Event].
func (*MirrorFailed) Level() slog.Level { return slog.LevelError }

func (e *MirrorFailed) String() string {
	if e.Key == (StoreKey{}) {
		return fmt.Sprintf("entries are missing from the session store: %v", e.Err)
	}
	if e.Entries == 0 {
		return fmt.Sprintf("entries of %s are missing from the session store: %v", e.Key, e.Err)
	}
	return fmt.Sprintf("%s of %s %s missing from the session store: %v", shown.Count(e.Entries, "entry"), e.Key, shown.Verb(e.Entries, "is", "are"), e.Err)
}

// LogValue implements [slog.LogValuer].
func (e *MirrorFailed) LogValue() slog.Value { return slog.StringValue(e.String()) }

// CloudOpened says in which cloud session the session is. No session archives or deletes agents and sessions of the
// cloud by itself: cloud.Cleanup does, with these ids.
type CloudOpened struct {
	SessionID      string // of the cloud session
	AgentID        string // of the cloud agent; "": Options.ExperimentalCloudAgent names an existing session, which knows its agent
	SessionCreated bool   // this session created the cloud session
	AgentCreated   bool   // this session created the cloud agent
}

// CloudReconnecting says that the stream of events of a cloud session was lost while a turn was open, and is opened
// again.
type CloudReconnecting struct {
	SessionID string        // of the cloud session
	Attempt   int           // since the last event, from 1
	Delay     time.Duration // until the attempt
	Err       error         // why the stream ended
}

// CloudInterrupted says that the cloud was asked to interrupt its turn: by an interrupt request, or because the session
// is closed.
type CloudInterrupted struct {
	SessionID string // of the cloud session
	Err       error  // a *[CloudError]: the cloud did not take the request, and its turn continues; nil if it did
}

// CloudLeft says that the session's connection to the cloud ended while the cloud may still work on messages. Work that
// was not interrupted continues and costs. Another session can follow it with CloudSession.ID and CloudStream.AfterID.
type CloudLeft struct {
	SessionID   string   // of the cloud session
	Messages    []string // uuids of the user messages whose turns were not seen to end, oldest first
	Interrupted bool     // the cloud was asked to interrupt them before, and took the request
	LastEventID string   // for CloudStream.AfterID; "": no event had an id
}

func (*CloudOpened) isEvent()       {}
func (*CloudReconnecting) isEvent() {}
func (*CloudInterrupted) isEvent()  {}
func (*CloudLeft) isEvent()         {}

// Level implements [Event].
func (*CloudOpened) Level() slog.Level { return slog.LevelInfo }

// Level implements [Event].
func (*CloudReconnecting) Level() slog.Level { return slog.LevelWarn }

// Level implements [Event].
func (e *CloudInterrupted) Level() slog.Level {
	if e.Err != nil {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// Level implements [Event].
func (*CloudLeft) Level() slog.Level { return slog.LevelWarn }

func (e *CloudOpened) String() string {
	made := func(created bool) string {
		if created {
			return "created "
		}
		return ""
	}
	text := fmt.Sprintf("cloud: %ssession %s", made(e.SessionCreated), e.SessionID)
	if e.AgentID != "" {
		text += fmt.Sprintf(" with %sagent %s", made(e.AgentCreated), e.AgentID)
	}
	return text
}

func (e *CloudReconnecting) String() string {
	return fmt.Sprintf("cloud: the event stream of session %s ended while a turn is open (%v); attempt %d to open it again in %v",
		e.SessionID, e.Err, e.Attempt, e.Delay)
}

func (e *CloudInterrupted) String() string {
	if e.Err != nil {
		return fmt.Sprintf("cloud: the turn of session %s was not interrupted: %v", e.SessionID, e.Err)
	}
	return "cloud: the turn of session " + e.SessionID + " was asked to stop"
}

func (e *CloudLeft) String() string {
	how := "was not interrupted and may continue"
	if e.Interrupted {
		how = "was interrupted, but not seen to end"
	}
	return fmt.Sprintf("cloud: the work of session %s on messages %s %s", e.SessionID, strings.Join(e.Messages, ", "), how)
}

// LogValue implements [slog.LogValuer].
func (e *CloudOpened) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue implements [slog.LogValuer].
func (e *CloudReconnecting) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue implements [slog.LogValuer].
func (e *CloudInterrupted) LogValue() slog.Value { return slog.StringValue(e.String()) }

// LogValue implements [slog.LogValuer].
func (e *CloudLeft) LogValue() slog.Value { return slog.StringValue(e.String()) }
