//go:build conformance

package conformance_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/transcript"
	"github.com/agent-troupe/troupe/transcript/store"
)

// A session is recorded in a store, and resumed from there by a home that is empty.
func TestSessionStore(t *testing.T) {
	t.Parallel()
	for name, flush := range map[string]session.StoreFlush{"batched": session.StoreBatched, "eager": session.StoreEager} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			kept := store.NewDir(filepath.Join(r.root, "kept"))
			o := r.options()
			o.SessionStore, o.SessionStoreOptions.Flush = kept, flush
			_, result := r.once(o, "my number is 4711 [[scn:echo noted]]")
			require.False(t, result.Failed())
			key := session.StoreKey{Project: transcript.FolderName(transcript.Claude, r.dir), Session: result.SessionID}
			first := r.entries(kept, key)
			require.NotEmpty(t, first)

			for _, resume := range []string{result.SessionID, ""} { // by its id, and as the newest
				o = r.options()
				o.SessionStore, o.SessionStoreOptions.Flush = kept, flush
				o.Resume, o.Continue = resume, resume == ""
				home := filepath.Join(r.root, "empty"+resume)
				require.NoError(t, os.Mkdir(home, 0o700))
				o.Env["HOME"] = home
				delete(o.Env, "CLAUDE_CONFIG_DIR")
				o.Spawner = nil // the agent needs the private directory, on this machine
				assert.Equal(t, result.SessionID, r.recalls(o).SessionID)
				found, err := filepath.Glob(filepath.Join(home, ".claude", "projects", "*", "*.jsonl"))
				require.NoError(t, err)
				assert.Empty(t, found, "the session was stored in the private directory")
			}
			all := r.entries(kept, key)
			require.Greater(t, len(all), len(first), "the later turns were appended to the same transcript")
			assert.Equal(t, first, all[:len(first)])
			assert.Empty(t, r.lost())
		})
	}
}

// What the agent has recorded in a store is found, shown, named, copied and deleted there,
// and the agent resumes a copy that was made there.
func TestSessionsInAStore(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	kept := store.NewDir(filepath.Join(r.root, "kept"))
	o := r.options()
	o.SessionStore = kept
	_, result := r.once(o, "my number is 4711 [[scn:echo noted]]")
	require.False(t, result.Failed())
	id := result.SessionID
	sessions := &transcript.Sessions{Vendor: transcript.Claude, Dir: r.dir, Store: kept}

	all, err := sessions.List(r.ctx, transcript.ListOptions{})
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.Equal(t, id, all[0].SessionID)
	assert.Contains(t, all[0].FirstPrompt, "my number is 4711")
	assert.Equal(t, r.shown(&transcript.Sessions{Vendor: transcript.Claude, Root: filepath.Join(r.home, ".claude"), Dir: r.dir}, id), r.shown(sessions, id),
		"the store and the file show the same")

	require.NoError(t, sessions.Rename(r.ctx, id, "my numbers"))
	copied, err := sessions.Fork(r.ctx, id, transcript.ForkOptions{})
	require.NoError(t, err)
	info, err := sessions.Info(r.ctx, copied)
	require.NoError(t, err)
	assert.Equal(t, "my numbers (fork)", info.CustomTitle)
	assert.Equal(t, copied, r.resumeFrom(kept, copied).SessionID)

	require.NoError(t, sessions.Delete(r.ctx, id))
	all, err = sessions.List(r.ctx, transcript.ListOptions{})
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.Equal(t, copied, all[0].SessionID)
	assert.Empty(t, r.lost())
}

// A session that the agent recorded in a file goes on from a store that it was imported to.
func TestAnImportedSession(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.remembered()
	kept := store.NewDir(filepath.Join(r.root, "kept"))
	local := &transcript.Sessions{Vendor: transcript.Claude, Root: filepath.Join(r.home, ".claude"), Dir: r.dir}
	done, err := local.Import(r.ctx, id, kept, transcript.ImportOptions{})
	require.NoError(t, err)
	assert.Zero(t, done.Damaged)
	key := session.StoreKey{Project: transcript.FolderName(transcript.Claude, r.dir), Session: id}
	assert.Equal(t, key, done.Key)
	first := r.entries(kept, key)
	assert.Len(t, first, done.Entries)
	assert.Equal(t, r.shown(local, id), r.shown(&transcript.Sessions{Vendor: transcript.Claude, Dir: r.dir, Store: kept}, id))
	assert.Equal(t, id, r.resumeFrom(kept, id).SessionID)
	all := r.entries(kept, key)
	require.Greater(t, len(all), len(first))
	assert.Equal(t, first, all[:len(first)])
}

// resumeFrom has the agent resume a session of a store, in a home that is empty, and say
// what it remembers.
func (r *rig) resumeFrom(kept session.Store, id string) *sdk.ResultMessage {
	r.t.Helper()
	o := r.options()
	o.SessionStore, o.Resume = kept, id
	home := filepath.Join(r.root, "empty"+id)
	require.NoError(r.t, os.Mkdir(home, 0o700))
	o.Env["HOME"] = home
	delete(o.Env, "CLAUDE_CONFIG_DIR")
	o.Spawner = nil // the agent needs the private directory, on this machine
	return r.recalls(o)
}

// shown are the messages of a session, by type and uuid.
func (r *rig) shown(s *transcript.Sessions, id string) (all []string) {
	r.t.Helper()
	for m, err := range s.Messages(r.ctx, id, transcript.ShownOptions{}) {
		require.NoError(r.t, err)
		all = append(all, m.Type+" "+m.UUID)
	}
	require.NotEmpty(r.t, all)
	return all
}

// entries are those of a transcript, by type and uuid.
func (r *rig) entries(s session.Store, key session.StoreKey) (all []string) {
	r.t.Helper()
	for e, err := range s.Load(r.ctx, key) {
		require.NoError(r.t, err)
		var head struct{ Type, UUID string }
		require.NoError(r.t, json.Unmarshal(e, &head))
		all = append(all, head.Type+" "+head.UUID)
	}
	return all
}

// lost returns what did not come into a store.
func (r *rig) lost() (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e, ok := e.Event.(*session.MirrorFailed); ok {
			all = append(all, e.String())
		}
	}
	return all
}
