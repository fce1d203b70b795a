package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"strings"
	"time"
)

// StoreKey names one transcript in a [Store]. Its JSON is that of the vendors' session
// stores.
type StoreKey struct {
	// Project is the name of the folder that the agent gives a working directory; see
	// transcript.FolderName.
	Project string `json:"projectKey"`
	Session string `json:"sessionId"` // the agent's id of the session
	// Subpath is empty for the session itself, and "subagents/agent-ID" for one of its
	// subagents. Its parts are separated by slashes.
	Subpath string `json:"subpath,omitempty"`
}

// String returns the parts of the key, separated by slashes.
func (k StoreKey) String() string {
	return strings.TrimSuffix(k.Project+"/"+k.Session+"/"+k.Subpath, "/")
}

// Valid returns an error unless every part of the key is a plain name: a store may use them
// as names of files. Stores get valid keys only.
func (k StoreKey) Valid() error {
	if !plainName(k.Project) || !plainName(k.Session) {
		return fmt.Errorf("session store: %q is no key: project and session must be names without slashes", k.String())
	}
	for part := range strings.SplitSeq(k.Subpath, "/") {
		if k.Subpath != "" && !plainName(part) {
			return fmt.Errorf("session store: %q is no key: the subpath must not be absolute, and must not hold empty parts or \"..\"", k.String())
		}
	}
	return nil
}

func plainName(s string) bool {
	return s != "" && s != "." && s != ".." && !strings.ContainsAny(s, "/\\\x00")
}

// Store keeps transcripts outside of the machine that the agent runs on, for
// Options.SessionStore. The agent still writes its files; the store gets a copy of what it
// writes, and a session can be resumed from there on a machine that never saw it.
// Implementations must be safe for concurrent use, and return soon after ctx has ended.
// Package transcript/store has some, and package transcript/storetest tests others.
//
// A method that a store cannot offer returns an error that matches errors.ErrUnsupported.
type Store interface {
	// Append adds entries to the end of a transcript, in their order. It creates a missing
	// transcript. Each entry is a JSON object. An entry with a "uuid" that the transcript
	// has already is left out, because an append that failed, or whose outcome is unknown,
	// is repeated. One with the same "uuid" and other content is a new one: the last
	// counts. Entries without one are added each time. For one key, Troupe does not call it
	// again before it has returned. The entries must not be changed, and not be kept
	// without a copy. ctx may have a lease: see [LeaseStore].
	Append(ctx context.Context, key StoreKey, entries []json.RawMessage) error
	// Load yields the entries of a transcript in their order, and an error as the last
	// thing. It yields nothing for a key that is not known. The entries are the caller's.
	Load(ctx context.Context, key StoreKey) iter.Seq2[json.RawMessage, error]
	// Sessions lists the sessions of a project, in any order. An unknown project has no
	// sessions.
	Sessions(ctx context.Context, project string) ([]StoredSession, error)
	// Subpaths lists the subpaths of a session's transcripts, without the empty one, in any
	// order.
	Subpaths(ctx context.Context, project, session string) ([]string, error)
	// Delete removes a transcript; without Subpath the session with all of its transcripts.
	// Deleting a missing transcript is not an error.
	Delete(ctx context.Context, key StoreKey) error
}

// StoreFiles is a [Store] whose transcripts are files of this machine, which readers need not
// copy: that makes lists and long transcripts several times as fast.
type StoreFiles interface {
	Store
	// File opens the file of a transcript to read it. Each line that is a JSON object is an
	// entry, in their order; other lines are not entries. If there is no such transcript
	// the error matches fs.ErrNotExist. The caller closes the file.
	File(ctx context.Context, key StoreKey) (*os.File, error)
}

// StoredSession is one row of [Store].Sessions.
type StoredSession struct {
	ID       string    `json:"sessionId"` // the agent's id
	Modified time.Time `json:"mtime"`     // when something was appended last
}

// StoreFlush says when the entries of a running session are appended to its store.
type StoreFlush string

const (
	// StoreBatched appends at each result, when StoreOptions.Entries or StoreOptions.Bytes
	// wait, and at the end of the session and of its processes. Entries that the agent writes
	// between turns are appended at once.
	StoreBatched StoreFlush = "batched"
	// StoreEager appends whatever the agent writes at once.
	StoreEager StoreFlush = "eager"
)

// StoreOptions say how Options.SessionStore is used. The zero value has the defaults, which
// are the vendors' where they have one. Negative values are a *[ConfigError].
type StoreOptions struct {
	// Flush says when entries are appended. Default: StoreBatched.
	Flush StoreFlush `json:"flush,omitempty"`
	// Load is how long the transcripts of a session that is resumed may take. Default: 60 s.
	Load time.Duration `json:"load,omitempty"`
	// Append is how long one attempt of an append may take. Default: 60 s.
	Append time.Duration `json:"append,omitempty"`
	// Attempts is how often an append is tried, with pauses of 200 ms and then four times as
	// long, at most 10 s. After the last one the entries are dropped, and [MirrorFailed] says
	// so. Default: 3.
	Attempts int `json:"attempts,omitempty"`
	// Entries and Bytes are how much may wait in a turn until it is appended. Defaults: 500
	// entries, 1 MiB.
	Entries int   `json:"entries,omitempty"`
	Bytes   int64 `json:"bytes,omitempty"` // see Entries
	// Waiting is how many bytes of entries may wait for the store. Further entries are
	// dropped, and [MirrorFailed] reports it. Default: 64 MiB.
	Waiting int64 `json:"waiting,omitempty"`
	// Lease is how long a lease of a [LeaseStore] lasts when its host dies. It is renewed after a
	// third of that time. A session that could not renew it for five sixths of the time is
	// ended with a *[LeaseError]. Default: 60 s; less than 1 s is a *[ConfigError].
	Lease time.Duration `json:"lease,omitempty"`
}

// WithDefaults returns the options in force.
func (l StoreOptions) WithDefaults() StoreOptions {
	l.Flush = cmp.Or(l.Flush, StoreBatched)
	l.Load = cmp.Or(l.Load, time.Minute)
	l.Append = cmp.Or(l.Append, time.Minute)
	l.Attempts = cmp.Or(l.Attempts, 3)
	l.Entries = cmp.Or(l.Entries, 500)
	l.Bytes = cmp.Or(l.Bytes, 1<<20)
	l.Waiting = cmp.Or(l.Waiting, 64<<20)
	l.Lease = cmp.Or(l.Lease, time.Minute)
	return l
}

// StoreError says that a session store did not do its work.
type StoreError struct {
	Doing string   // what was tried, such as "load"
	Key   StoreKey // zero: of no transcript in particular
	Err   error    // why it failed
}

func (e *StoreError) Error() string {
	if e.Key == (StoreKey{}) {
		return fmt.Sprintf("session store: %s: %v", e.Doing, e.Err)
	}
	return fmt.Sprintf("session store: %s %s: %v", e.Doing, e.Key, e.Err)
}

func (e *StoreError) Unwrap() error { return e.Err }

// ErrMirrorFull is the error of [MirrorFailed] for entries that had no room:
// StoreOptions.Waiting, or 1,024 writes of the agent, waited for the store already.
var ErrMirrorFull = errors.New("too much waits for the session store; it is too slow, or does not answer")

// ErrStoreAhead is in the error of [MirrorFailed] when the store has messages of the session
// that the agent's transcript lacks: another host has continued it. Further entries of the
// transcript are not appended.
var ErrStoreAhead = errors.New("the session store has messages that the agent's transcript lacks, since another host went on with the session")

func checkStore(o *Options) []error {
	var errs []error
	add := func(option, problem, fix string) {
		errs = append(errs, &ConfigError{Option: option, Problem: problem, Fix: fix})
	}
	l := o.SessionStoreOptions
	if f := l.Flush; f != "" && f != StoreBatched && f != StoreEager {
		add("SessionStoreOptions.Flush", fmt.Sprintf("%q is not known", string(f)), `use "batched" or "eager"`)
	}
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"Load", int64(l.Load)}, {"Append", int64(l.Append)}, {"Attempts", int64(l.Attempts)},
		{"Entries", int64(l.Entries)}, {"Bytes", l.Bytes}, {"Waiting", l.Waiting},
	} {
		if n.value < 0 {
			add("SessionStoreOptions."+n.name, "is negative", "use 0 for the default, or a positive value")
		}
	}
	if l.Lease != 0 && l.Lease < time.Second {
		add("SessionStoreOptions.Lease", "is less than a second", "use 0 for the default, or at least a second")
	}
	if o.SessionStore == nil {
		if l != (StoreOptions{}) {
			add("SessionStoreOptions", "are of no use without SessionStore", "set SessionStore, or leave them out")
		}
		return errs
	}
	if !o.PersistSession.Or(true) {
		add("PersistSession", "is false, and SessionStore gets what the agent stores", "leave one of them out")
	}
	return errs
}

// StoreSummaries is implemented by a [Store] that keeps a summary of each session, so that
// sessions can be listed without loading them. transcript.FoldSummary makes the summaries:
// call it in Append, for keys without a Subpath, with the entries that were new.
type StoreSummaries interface {
	// Summaries returns the summaries of a project's sessions, in any order. A summary that
	// is older than the session, or missing, makes the caller load the session.
	Summaries(ctx context.Context, project string) ([]StoredSummary, error)
}

// StoredSummary is one row of [StoreSummaries].Summaries.
type StoredSummary struct {
	ID string // of the session, as in [StoredSession]
	// Modified is the time that [StoredSession] had when the summary was made.
	Modified time.Time
	// Data is a JSON object from transcript.FoldSummary. A store keeps it as it is.
	Data json.RawMessage
}

// Files is where files are written that have to survive a loss of power: a store in a
// directory, edits of transcripts, the runtime's own records. Names are paths of the
// machine. Only changes go through it: readers open the machine's files, so another
// implementation makes the same changes there, as that of package journaltest does. It is
// safe for concurrent use.
type Files interface {
	// Create opens a new, empty file with mode 0600. A file or link of that name is removed
	// before.
	Create(name string) (FileWriter, error)
	// Append opens a file to write at its end. A missing one is made.
	Append(name string) (FileWriter, error)
	// Rename replaces a file by another one.
	Rename(from, to string) error
	// Remove removes a file. A missing one is fs.ErrNotExist.
	Remove(name string) error
	// Mkdir makes a directory and its parents. Their names are durable then.
	Mkdir(name string, mode fs.FileMode) error
	// SyncDir makes the names in a directory durable.
	SyncDir(name string) error
}

// FileWriter is a file that is written from front to back.
type FileWriter interface {
	io.Writer
	// Sync makes what was written durable.
	Sync() error
	Close() error
}
