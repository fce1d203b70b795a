package session

import (
	"fmt"
	"log/slog"
	"strings"
	"time"
)

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
