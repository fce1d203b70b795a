//go:build unix

package runtime

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/session"
)

// The configuration directory is the agent's: what it puts there neither holds up the
// recovery nor fills the memory.
func TestAHostileHistory(t *testing.T) {
	t.Parallel()
	config := t.TempDir()
	folder, live := filepath.Join(config, "projects", "-w"), filepath.Join(config, "sessions")
	require.NoError(t, os.MkdirAll(folder, 0o700))
	require.NoError(t, os.Mkdir(live, 0o700))
	require.NoError(t, syscall.Mkfifo(filepath.Join(folder, "pipe.jsonl"), 0o600))
	require.NoError(t, os.Symlink("/dev/zero", filepath.Join(folder, "zero.jsonl")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(live, "1.json"), 0o600))
	require.NoError(t, os.Symlink("/dev/zero", filepath.Join(live, "2.json")))
	require.NoError(t, os.WriteFile(filepath.Join(live, "3.json"), []byte(`{"sessionId":"known"}`), 0o600))
	s := &Session{dialect: claude.New()}
	in := &dialect.Input{Options: session.Options{Env: map[string]string{"CLAUDE_CONFIG_DIR": config}, CleanEnv: true}}
	read := s.history(&Spec{Dialect: s.dialect, Options: session.Options{MaxRestarts: 1}})
	for id, want := range map[string]machine.History{
		"pipe": {}, "zero": {}, "nobody": {}, "known": {Known: true, Missing: true},
	} {
		assert.Equal(t, want, read(t.Context(), in, id, machine.Wanted{}), id)
	}
}
