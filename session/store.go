package session

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
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

// Store keeps transcripts outside of the machine that the agent runs on.
// Implementations must be safe for concurrent use, and return soon after ctx has ended.
// Package transcript/store has some, and package transcript/storetest tests others.
//
// A method that a store cannot offer returns an error that matches errors.ErrUnsupported.
type Store interface {
	// Append adds entries to the end of a transcript, in their order. It makes the
	// transcript if there is none. Each entry is a JSON object. An entry with a "uuid" that
	// the transcript has already is left out, because an append that has failed, or that
	// nobody knows the outcome of, is repeated. One with the same "uuid" and other content
	// is a new one: the last counts. Entries without one are added each time.
	// For one key, Troupe does not call it again before it has returned. The entries must
	// not be changed, and not be kept without a copy.
	Append(ctx context.Context, key StoreKey, entries []json.RawMessage) error
	// Load yields the entries of a transcript in their order, and an error as the last
	// thing. It yields nothing for a key that is not known. The entries are the caller's.
	Load(ctx context.Context, key StoreKey) iter.Seq2[json.RawMessage, error]
	// Sessions lists the sessions of a project, in any order. An unknown project has none.
	Sessions(ctx context.Context, project string) ([]StoredSession, error)
	// Subpaths lists the subpaths of a session's transcripts, without the empty one, in any
	// order.
	Subpaths(ctx context.Context, project, session string) ([]string, error)
	// Delete removes a transcript; without Subpath the session with all of its transcripts.
	// What is not there is no error.
	Delete(ctx context.Context, key StoreKey) error
}

// StoredSession is one row of [Store].Sessions.
type StoredSession struct {
	ID       string    `json:"sessionId"` // the agent's id
	Modified time.Time `json:"mtime"`     // when something was appended last
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
