package runtime

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet/journal/journaltest"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/transcript"
)

const keptID = "11111111-1111-4111-8111-111111111111"

// keeperIn is one whose warnings are returned.
func keeperIn(t *testing.T, state string, disk *journaltest.Disk) (k *keeper, warnings *[]string) {
	t.Helper()
	warnings = new([]string)
	sys := kernel.NewSystem(kernel.Config{})
	cfg := Config{StateDir: state, KeepSessions: time.Hour, Leases: LocalLeases{Dir: t.TempDir()}}
	if disk != nil {
		files, err := disk.Files(state)
		require.NoError(t, err)
		cfg.Files = files
	}
	k = newKeeper(cfg, sys, func(problem string) { *warnings = append(*warnings, problem) }, func(string) bool { return false })
	return k, warnings
}

// A file that is not a record of a session is removed, and reported once.
func TestARecordThatIsTorn(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty": "", "torn": `{"session":"1111`, "zeros": "\x00\x00\x00", "another session": `{"session":"22222222-1111-4111-8111-111111111111","root":"/r"}`,
		"nothing": "null", "without a root": `{"session":"` + keptID + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state := t.TempDir()
			k, warnings := keeperIn(t, state, nil)
			file := filepath.Join(state, "sessions", keptID+".json")
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
			require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
			k.sweep()
			k.sweep()
			require.Len(t, *warnings, 1)
			require.Contains(t, (*warnings)[0], file)
			require.Contains(t, (*warnings)[0], "is no record of a session")
			require.NoFileExists(t, file)
		})
	}
}

// The file of a program that died while it wrote a record is removed when no program can
// be writing it any more.
func TestARecordThatWasNeverFinished(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	k, warnings := keeperIn(t, state, nil)
	part := filepath.Join(state, "sessions", "."+keptID+".json.part")
	require.NoError(t, os.MkdirAll(filepath.Dir(part), 0o700))
	require.NoError(t, os.WriteFile(part, []byte("{"), 0o600))
	k.sweep()
	require.FileExists(t, part)
	old := time.Now().Add(-2 * time.Hour)
	require.NoError(t, os.Chtimes(part, old, old))
	k.sweep()
	require.NoFileExists(t, part)
	require.Empty(t, *warnings)
}

// A loss of power leaves a whole record or none, and a record stays as long as there may be a
// transcript.
func TestALossOfPowerWhileSessionsAreKept(t *testing.T) {
	t.Parallel()
	state, disk := t.TempDir(), new(journaltest.Disk)
	home := filepath.Join(state, "home")
	file := filepath.Join(home, "projects", "-w", keptID+".jsonl")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte("{}\n"), 0o600))
	k, warnings := keeperIn(t, state, disk)
	s := keptSession{Session: keptID, Vendor: transcript.Claude, Root: home}
	k.note(s)
	noted := disk.Ops()
	old := time.Now().Add(-2 * time.Hour)
	require.NoError(t, os.Chtimes(file, old, old))
	k.sweep()
	require.Empty(t, *warnings)
	require.NoFileExists(t, file)
	states := 0
	for n, left := range disk.Crashes() {
		states++
		to := t.TempDir()
		require.NoError(t, left.WriteTo(to))
		record, err := os.ReadFile(filepath.Join(to, "sessions", keptID+".json"))
		_, there := os.Stat(filepath.Join(to, "home", "projects", "-w", keptID+".jsonl"))
		if err != nil {
			require.True(t, n < noted || there != nil, "operation %d: the transcript is there, and its record is not", n)
			continue
		}
		var is keptSession
		require.NoError(t, json.Unmarshal(record, &is), "operation %d", n)
		require.Equal(t, s, is)
	}
	require.Greater(t, states, 10)
}
