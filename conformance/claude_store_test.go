//go:build conformance

package conformance_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
