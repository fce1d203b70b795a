package session

import (
	"fmt"
	"log/slog"

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
