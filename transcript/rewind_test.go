package transcript_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/transcript"
)

const checkpointed = "5e550000-0000-4000-8000-000000000006"

// message returns the UUID of the n-th prompt of the session with checkpoints.
func message(n string) string { return "66666666-0000-4000-8000-00000000000" + n }

// newProject copies the recorded sessions and makes a project for the one that has
// checkpoints: at message 1 ck.txt did not exist, at 2 it was v1, at 3 v2, at 4 v3.
func newProject(t *testing.T) (s *transcript.Sessions, project string) {
	t.Helper()
	root, project := copyCorpus(t), t.TempDir()
	history := filepath.Join(root, "file-history", checkpointed)
	require.NoError(t, os.MkdirAll(history, 0o700))
	for _, v := range []string{"2", "3", "4"} {
		content := "v" + string(v[0]-1) + "\n"
		require.NoError(t, os.WriteFile(filepath.Join(history, "3b84326907c343d5@v"+v), []byte(content), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(project, "ck.txt"), []byte("v3\n"), 0o640))
	return &transcript.Sessions{Vendor: transcript.Claude, Root: root}, project
}

func TestRewind(t *testing.T) {
	t.Parallel()
	s, project := newProject(t)
	file := filepath.Join(project, "ck.txt")
	for _, step := range []struct {
		name, to string
		dry      bool
		action   transcript.RewindAction
		content  string // "": there is no file
	}{
		{"only said", "2", true, transcript.RewindWrite, "v3\n"},
		{"back", "2", false, transcript.RewindWrite, "v1\n"},
		{"again", "2", false, transcript.RewindKeep, "v1\n"},
		{"forward", "3", false, transcript.RewindWrite, "v2\n"},
		{"before it existed", "1", false, transcript.RewindRemove, ""},
		{"still not there", "1", false, transcript.RewindKeep, ""},
		{"forward again", "4", false, transcript.RewindWrite, "v3\n"},
	} {
		r, err := s.Rewind(t.Context(), checkpointed, message(step.to), transcript.RewindOptions{DryRun: step.dry, Dir: project})
		require.NoError(t, err, step.name)
		assert.Equal(t, []transcript.RewoundFile{{Path: file, Action: step.action}}, r.Files, step.name)
		raw, err := os.ReadFile(file)
		if step.content == "" {
			require.ErrorIs(t, err, os.ErrNotExist, step.name)
			continue
		}
		require.NoError(t, err, step.name)
		assert.Equal(t, step.content, string(raw), step.name)
		left, err := os.ReadDir(project)
		require.NoError(t, err)
		assert.Len(t, left, 1, "nothing else is left there")
	}
}

func TestRewindKeepsTheMode(t *testing.T) {
	t.Parallel()
	s, project := newProject(t)
	_, err := s.Rewind(t.Context(), checkpointed, message("2"), transcript.RewindOptions{Dir: project})
	require.NoError(t, err)
	info, err := os.Stat(filepath.Join(project, "ck.txt"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o640), info.Mode().Perm())
}

// A caller of Rewind may change the files itself, in further directories, too.
func TestRewindApply(t *testing.T) {
	t.Parallel()
	s, project := newProject(t)
	type change struct{ file, before, after string }
	file := filepath.Join(project, "ck.txt")
	for to, want := range map[string][]change{"2": {{file, "v3\n", "v1\n"}}, "1": {{file, "v3\n", "<nil>"}}, "4": nil} {
		for _, dry := range []bool{true, false} {
			var got []change
			text := func(b []byte) string {
				if b == nil {
					return "<nil>"
				}
				return string(b)
			}
			_, err := s.Rewind(t.Context(), checkpointed, message(to), transcript.RewindOptions{Dir: project, DryRun: dry, Apply: func(at string, before, after []byte) error {
				got = append(got, change{at, text(before), text(after)})
				return nil
			}})
			require.NoError(t, err)
			assert.Equal(t, want, got, to)
		}
	}
	failed := errors.New("the disk is full")
	_, err := s.Rewind(t.Context(), checkpointed, message("2"), transcript.RewindOptions{Dir: project, Apply: func(string, []byte, []byte) error { return failed }})
	require.ErrorIs(t, err, failed)
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "v3\n", string(content))

	rewriteCheckpoints(t, s, `"ck.txt"`, `"`+file+`"`)
	r, err := s.Rewind(t.Context(), checkpointed, message("2"), transcript.RewindOptions{Dir: t.TempDir(), Dirs: []string{project}})
	require.NoError(t, err)
	assert.Equal(t, []transcript.RewoundFile{{Path: file, Action: transcript.RewindWrite}}, r.Files)

	rewriteCheckpoints(t, s, `"backupFileName":"`, `"troupeMissing":"it was too large","backupFileName":"`)
	r, err = s.Rewind(t.Context(), checkpointed, message("3"), transcript.RewindOptions{Dir: project})
	require.NoError(t, err)
	assert.Equal(t, []transcript.RewoundFile{{Path: file, Action: transcript.RewindSkip, Why: "it has no backup: it was too large"}}, r.Files)
}

// TestRewindSkips leaves files alone that are not what the checkpoint had.
func TestRewindSkips(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(t *testing.T, s *transcript.Sessions, project string)
		why     string
	}{
		"a link": {func(t *testing.T, _ *transcript.Sessions, project string) {
			require.NoError(t, os.Remove(filepath.Join(project, "ck.txt")))
			require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(project, "ck.txt")))
		}, "it is a link or no regular file"},
		"no backup": {func(t *testing.T, s *transcript.Sessions, _ string) {
			require.NoError(t, os.RemoveAll(filepath.Join(s.Root, "file-history")))
		}, "its backup cannot be read"},
		"outside": {func(t *testing.T, s *transcript.Sessions, _ string) {
			rewriteCheckpoints(t, s, `"ck.txt"`, `"../ck.txt"`)
		}, "it is outside of the session's directory"},
		"through a link": {func(t *testing.T, s *transcript.Sessions, project string) {
			rewriteCheckpoints(t, s, `"ck.txt"`, `"sub/ck.txt"`)
			require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(project, "sub")))
		}, "its directory is a link to another place"},
		"a backup elsewhere": {func(t *testing.T, s *transcript.Sessions, _ string) {
			rewriteCheckpoints(t, s, "3b84326907c343d5@v2", "../../settings.json")
		}, "the name of its backup is not valid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, project := newProject(t)
			c.prepare(t, s, project)
			r, err := s.Rewind(t.Context(), checkpointed, message("2"), transcript.RewindOptions{Dir: project})
			require.NoError(t, err)
			require.Len(t, r.Files, 1)
			assert.Equal(t, transcript.RewindSkip, r.Files[0].Action)
			assert.Contains(t, r.Files[0].Why, c.why)
		})
	}
}

// rewriteCheckpoints changes the transcript as a program of the agent could.
func rewriteCheckpoints(t *testing.T, s *transcript.Sessions, old, text string) {
	t.Helper()
	file := filepath.Join(s.Root, "projects/-w-proj", checkpointed+".jsonl")
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(raw), old)
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(raw), old, text)), 0o600))
}

func TestRewindSaysWhatItCannotUndo(t *testing.T) {
	t.Parallel()
	s := &transcript.Sessions{Vendor: transcript.Claude, Root: sharedCorpus(t)}
	_, err := s.Rewind(t.Context(), "5e550000-0000-4000-8000-000000000001", "11111111-1111-4111-8111-111111111111", transcript.RewindOptions{DryRun: true})
	require.ErrorIs(t, err, transcript.ErrNoCheckpoint, "the session had no checkpoints")

	owned, project := newProject(t)
	file := filepath.Join(owned.Root, "projects/-w-proj", checkpointed+".jsonl")
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(`{"type":"assistant","uuid":"66666666-0000-4000-8000-0000000000ff","parentUuid":"b07e49c8-3d3a-44c8-bcdc-5e10f10795d7","isSidechain":false,"message":{"id":"m","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"sed -i s/a/b/ ck.txt"}}]}}` + "\n")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	r, err := owned.Rewind(t.Context(), checkpointed, message("2"), transcript.RewindOptions{DryRun: true, Dir: project})
	require.NoError(t, err)
	assert.Equal(t, []string{"sed -i s/a/b/ ck.txt"}, r.Commands)
}
