package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/internal/parcel"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/transcript/store"
)

// sessionsDir is the directory in Job.Out for copies of the agents' sessions.
const sessionsDir = "sessions"

// sessions is a store of the sessions of a job that others may continue. It keeps them in one project: that
// of an agent is named by its directory, and each program has others.
type sessions struct{ dir *store.Dir }

var _ session.LeaseStore = (*sessions)(nil)

func newSessions(root string) *sessions {
	return &sessions{store.NewDir(filepath.Join(root, sessionsDir))}
}

const movedProject = "job"

func anywhere(key session.StoreKey) session.StoreKey {
	key.Project = movedProject
	return key
}

// Append implements [session.Store].
func (s *sessions) Append(ctx context.Context, key session.StoreKey, entries []json.RawMessage) error {
	return s.dir.Append(ctx, anywhere(key), entries)
}

// Load implements [session.Store].
func (s *sessions) Load(ctx context.Context, key session.StoreKey) iter.Seq2[json.RawMessage, error] {
	return s.dir.Load(ctx, anywhere(key))
}

// Sessions implements [session.Store]. The last session of a directory is not known.
func (s *sessions) Sessions(context.Context, string) ([]session.StoredSession, error) {
	return nil, errors.ErrUnsupported
}

// Subpaths implements [session.Store].
func (s *sessions) Subpaths(ctx context.Context, _, id string) ([]string, error) {
	return s.dir.Subpaths(ctx, movedProject, id)
}

// Delete implements [session.Store].
func (s *sessions) Delete(ctx context.Context, key session.StoreKey) error {
	return s.dir.Delete(ctx, anywhere(key))
}

// AcquireLease implements [session.LeaseStore].
func (s *sessions) AcquireLease(ctx context.Context, r session.LeaseRequest) (session.Lease, error) {
	return s.dir.AcquireLease(ctx, r)
}

// RenewLease implements [session.LeaseStore].
func (s *sessions) RenewLease(ctx context.Context, l session.Lease, ttl time.Duration) error {
	return s.dir.RenewLease(ctx, l, ttl)
}

// ReleaseLease implements [session.LeaseStore].
func (s *sessions) ReleaseLease(ctx context.Context, l session.Lease) error {
	return s.dir.ReleaseLease(ctx, l)
}

const (
	ownTranscript = "main"
	subTranscript = "sub/"
	entryExt      = ".jsonl"
)

// pack adds the transcripts of a session to a parcel.
func (s *sessions) pack(ctx context.Context, p *parcel.Packer, id string) error {
	subs, err := s.dir.Subpaths(ctx, movedProject, id)
	if err != nil {
		return err
	}
	for _, sub := range append([]string{""}, subs...) {
		var lines bytes.Buffer
		for e, err := range s.dir.Load(ctx, session.StoreKey{Project: movedProject, Session: id, Subpath: sub}) {
			if err == nil {
				err = json.Compact(&lines, e)
			}
			if err != nil {
				return err
			}
			lines.WriteByte('\n')
			if lines.Len() > maxMove {
				return &parcel.TooLargeError{Name: "the session", Limit: maxMove}
			}
		}
		name := ownTranscript
		if sub != "" {
			name = subTranscript + sub
		} else if lines.Len() == 0 {
			return errors.New("the agent has stored nothing of the session yet")
		}
		if err := p.Bytes(path.Join(moveSession, name+entryExt), lines.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// forget removes what this program has of a session that another one has continued.
func (s *sessions) forget(ctx context.Context, id string) error {
	return s.dir.Delete(ctx, session.StoreKey{Project: movedProject, Session: id})
}

// take stores a transcript of a parcel.
func (s *sessions) take(ctx context.Context, id, name string, in *parcel.Reader) error {
	name, ok := strings.CutSuffix(name, entryExt)
	key := session.StoreKey{Project: movedProject, Session: id}
	if name != ownTranscript {
		sub, is := strings.CutPrefix(name, subTranscript)
		ok, key.Subpath = ok && is && sub != "", sub
	}
	if !ok || key.Valid() != nil {
		return fmt.Errorf("it has a transcript named %q", name)
	}
	var all bytes.Buffer
	if _, err := all.ReadFrom(in); err != nil {
		return err
	}
	const most = 500
	var entries []json.RawMessage
	for line := range bytes.Lines(all.Bytes()) {
		if entries = append(entries, json.RawMessage(bytes.TrimSpace(line))); len(entries) < most {
			continue
		}
		if err := s.dir.Append(ctx, key, entries); err != nil {
			return err
		}
		entries = nil
	}
	if len(entries) == 0 {
		return nil
	}
	return s.dir.Append(ctx, key, entries)
}
