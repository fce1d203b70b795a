package transcript_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet/journal/journaltest"
	"github.com/agent-troupe/troupe/transcript"
)

// edit is one that a loss of power interrupts.
type edit struct {
	name string
	file func(s *transcript.Sessions, project string) string // it changes
	do   func(t *testing.T, s *transcript.Sessions, project string) error
}

const copied = "77777777-0000-4000-8000-000000000001"

func edits() []edit {
	transcriptOf := func(id string) func(*transcript.Sessions, string) string {
		return func(s *transcript.Sessions, _ string) string {
			found, _ := filepath.Glob(filepath.Join(s.Root, "projects", "*", checkpointed+".jsonl")) // the pattern is valid
			return filepath.Join(filepath.Dir(found[0]), id)
		}
	}
	inProject := func(_ *transcript.Sessions, project string) string { return filepath.Join(project, "ck.txt") }
	rewind := func(to string) func(t *testing.T, s *transcript.Sessions, project string) error {
		return func(t *testing.T, s *transcript.Sessions, project string) error {
			t.Helper()
			r, err := s.Rewind(t.Context(), checkpointed, message(to), transcript.RewindOptions{Dir: project})
			if err == nil && len(r.Files) == 1 && r.Files[0].Action == transcript.RewindSkip {
				err = errors.New(r.Files[0].Why)
			}
			return err
		}
	}
	return []edit{
		{"fork", transcriptOf(copied + ".jsonl"), func(t *testing.T, s *transcript.Sessions, _ string) error {
			t.Helper()
			_, err := s.Fork(t.Context(), checkpointed, transcript.ForkOptions{})
			return err
		}},
		{"archive", transcriptOf(checkpointed + "/archived.json"), func(t *testing.T, s *transcript.Sessions, _ string) error {
			t.Helper()
			return s.Archive(t.Context(), checkpointed)
		}},
		{"rename", transcriptOf(checkpointed + ".jsonl"), func(t *testing.T, s *transcript.Sessions, _ string) error {
			t.Helper()
			return s.Rename(t.Context(), checkpointed, "a title")
		}},
		{"delete", transcriptOf(checkpointed + ".jsonl"), func(t *testing.T, s *transcript.Sessions, _ string) error {
			t.Helper()
			return s.Delete(t.Context(), checkpointed)
		}},
		{"restored", inProject, rewind("2")},
		{"removed", inProject, rewind("1")},
	}
}

// begin returns a machine with the session, and the disk that its edits go to.
func begin(t *testing.T) (s *transcript.Sessions, project string, disk *journaltest.Disk, root string) {
	t.Helper()
	from, at := newProject(t)
	root = t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(root, "home"), os.DirFS(from.Root)))
	require.NoError(t, os.CopyFS(filepath.Join(root, "project"), os.DirFS(at)))
	disk = new(journaltest.Disk)
	files, err := disk.Files(root)
	require.NoError(t, err)
	return &transcript.Sessions{Vendor: transcript.Claude, Root: filepath.Join(root, "home"), Files: files, NewID: func() string { return copied }}, filepath.Join(root, "project"), disk, root
}

const noFile = "(no file)"

// content is that of a file, or noFile.
func content(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return noFile
	}
	require.NoError(t, err)
	return string(raw)
}

// onDisk is content for a file of a disk.
func onDisk(t *testing.T, disk *journaltest.Disk, name string) string {
	t.Helper()
	r, err := disk.Read(name)
	if errors.Is(err, os.ErrNotExist) {
		return noFile
	}
	require.NoError(t, err)
	raw, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(raw)
}

// After a loss of power a file is as it was before the edit or as it is after it; once the
// edit has returned it is the new one. A line that is appended may be torn before.
func TestALossOfPowerInAnEdit(t *testing.T) {
	t.Parallel()
	for _, e := range edits() {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			s, project, disk, root := begin(t)
			file := e.file(s, project)
			was := content(t, file)
			require.NoError(t, e.do(t, s, project))
			is := content(t, file)
			require.NotEqual(t, was, is)
			rel, err := filepath.Rel(root, file)
			require.NoError(t, err)
			states := 0
			for n, left := range disk.Crashes() {
				states++
				got := onDisk(t, left, filepath.ToSlash(rel))
				switch {
				case n == disk.Ops():
					require.Equal(t, is, got, "the edit had returned")
				case e.name == "rename":
					require.True(t, strings.HasPrefix(got, was), "operation %d", n)
				case got != was:
					require.Equal(t, is, got, "operation %d", n)
				}
			}
			require.Greater(t, states, 2)
		})
	}
}

// Each operation of an edit fails: the error says so, the file is as it was, or torn where a
// line is appended, and nothing else is left.
func TestADiskThatFailsInAnEdit(t *testing.T) {
	t.Parallel()
	full := errors.New("no space left on device")
	for _, e := range edits() {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			for at := 1; ; at++ {
				s, project, disk, _ := begin(t)
				file := e.file(s, project)
				was := content(t, file)
				n, last := 0, journaltest.Kind("")
				disk.Fail = func(op journaltest.Op) error {
					if n++; n == at {
						last = op.Kind
						return full
					}
					return nil
				}
				err := e.do(t, s, project)
				if last == "" {
					require.NoError(t, err)
					require.Greater(t, at, 1)
					return
				}
				require.ErrorContains(t, err, full.Error(), "operation %d, %s", at, last)
				left, err := filepath.Glob(filepath.Join(filepath.Dir(file), ".*.part"))
				require.NoError(t, err)
				require.Empty(t, left, "operation %d, %s", at, last)
				switch {
				case last == journaltest.SyncDir: // it is there, and may not be tomorrow
				case e.name == "rename":
					require.True(t, strings.HasPrefix(content(t, file), was), "operation %d, %s", at, last)
				default:
					require.Equal(t, was, content(t, file), "operation %d, %s", at, last)
				}
			}
		})
	}
}
