package command

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/fleet/queue"
)

// repository is one with two commits: file has "one", and then "two".
func repository(t *testing.T) (dir, first string) {
	t.Helper()
	dir = t.TempDir()
	run := func(args ...string) string {
		out, err := git(t.Context(), dir, append([]string{"-c", "user.name=t", "-c", "user.email=t@t"}, args...)...)
		require.NoError(t, err)
		return out
	}
	run("init", "-q", "-b", "main")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	for _, text := range []string{"one", "two"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "sub", "file"), []byte(text), 0o600))
		run("add", ".")
		run("commit", "-q", "-m", text)
		if first == "" {
			first = run("rev-parse", "HEAD")
		}
	}
	return dir, first
}

// travel packs the places of a job here, and unpacks them as a worker does.
func travel(t *testing.T, s *settings) (there *settings) {
	t.Helper()
	places, err := s.pack(t.Context(), t.TempDir())
	require.NoError(t, err)
	kept := queue.DirFiles(t.TempDir())
	for _, f := range (&specification{Places: places}).files() {
		raw, err := os.ReadFile(f.Path)
		require.NoError(t, err)
		require.NoError(t, kept.Put(t.Context(), f.Name, bytes.NewReader(raw)))
	}
	dir := t.TempDir()
	for range 2 { // the second time all is there
		there = &settings{}
		there.batch.job.Tasks = append(there.batch.job.Tasks, s.batch.job.Tasks...)
		if w := s.batch.job.Workspace; w != nil {
			own := *w
			there.batch.job.Workspace = &own
		}
		require.NoError(t, there.unpack(t.Context(), places, kept, dir))
	}
	return there
}

func content(t *testing.T, name ...string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(name...))
	require.NoError(t, err)
	return string(raw)
}

// A repository, a commit of it, and one at a URL come to a worker, and the repository stays as it was.
func TestWorktreesTravel(t *testing.T) {
	t.Parallel()
	dir, first := repository(t)
	refs, err := git(t.Context(), dir, "for-each-ref")
	require.NoError(t, err)
	s := &settings{}
	s.opts.Cwd = filepath.Join(dir, "sub")
	s.batch.job.Workspace = &fleet.Workspace{Kind: fleet.WorkspaceWorktree}
	s.batch.job.Tasks = []fleet.Task{
		{ID: "head"},
		{ID: "first", Workspace: &fleet.Workspace{Kind: fleet.WorkspaceWorktree, From: dir, Rev: first}},
		{ID: "url", Workspace: &fleet.Workspace{Kind: fleet.WorkspaceWorktree, From: "file://" + dir, Rev: "main"}},
		{ID: "as it is", Workspace: &fleet.Workspace{From: "/srv"}},
	}
	there := travel(t, s)
	assert.Equal(t, "two", content(t, there.batch.job.Workspace.From, "file"), "in the same directory of the repository")
	at := there.batch.job.Tasks
	assert.Nil(t, at[0].Workspace)
	assert.Equal(t, first, at[1].Workspace.Rev)
	assert.Equal(t, "one", content(t, at[1].Workspace.From, "sub", "file"))
	assert.Equal(t, "two", content(t, at[2].Workspace.From, "sub", "file"))
	assert.Equal(t, "/srv", at[3].Workspace.From)
	assert.Equal(t, first, s.batch.job.Tasks[1].Workspace.Rev, "the job here is as it was")
	assert.Equal(t, dir, s.batch.job.Tasks[1].Workspace.From)
	now, err := git(t.Context(), dir, "for-each-ref")
	require.NoError(t, err)
	assert.Equal(t, refs, now)
}

// A directory comes to a worker with modes and links, and without jobs and pipes.
func TestCopiesTravel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"a": 0o600, "run": 0o700, "b/c": 0o600, "out/" + journal.Name: 0o600, "out/" + journal.LockName: 0o600} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(name), mode))
	}
	require.NoError(t, os.Symlink("a", filepath.Join(dir, "link")))
	s := &settings{}
	s.opts.Cwd = dir
	s.batch.job.Workspace = &fleet.Workspace{Kind: fleet.WorkspaceCopy}
	s.batch.job.Tasks = []fleet.Task{{ID: "t"}}
	from := travel(t, s).batch.job.Workspace.From
	assert.NotEqual(t, dir, from)
	assert.Equal(t, "b/c", content(t, from, "b/c"))
	assert.NoDirExists(t, filepath.Join(from, "out"), "the directory of a job")
	target, err := os.Readlink(filepath.Join(from, "link"))
	require.NoError(t, err)
	assert.Equal(t, "a", target)
	st, err := os.Stat(filepath.Join(from, "run"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), st.Mode().Perm())
}

// An archive that wants to write elsewhere is refused.
func TestAnArchiveStaysInItsDirectory(t *testing.T) {
	t.Parallel()
	for name, h := range map[string][]tar.Header{
		"up":         {{Name: "../out", Typeflag: tar.TypeReg}},
		"absolute":   {{Name: "/tmp/out", Typeflag: tar.TypeReg}},
		"a link":     {{Name: "l", Linkname: "..", Typeflag: tar.TypeSymlink}, {Name: "l/out", Typeflag: tar.TypeReg}},
		"a hardlink": {{Name: "l", Linkname: "/etc/passwd", Typeflag: tar.TypeLink}},
	} {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		w := tar.NewWriter(z)
		for i := range h {
			h[i].Mode = 0o600
			require.NoError(t, w.WriteHeader(&h[i]))
		}
		require.NoError(t, w.Close())
		require.NoError(t, z.Close())
		dir := t.TempDir()
		require.Error(t, extract(&b, filepath.Join(dir, "in")), name)
		assert.NoFileExists(t, filepath.Join(dir, "out"), name)
	}
}

// Places that cannot travel are mistakes of the submitter.
func TestPlacesAreRefused(t *testing.T) {
	t.Parallel()
	dir, _ := repository(t)
	for says, w := range map[string]fleet.Workspace{
		"has a secret":       {Kind: fleet.WorkspaceWorktree, From: "https://user:pw@example.com/r.git"},
		"not a git repo":     {Kind: fleet.WorkspaceWorktree, From: t.TempDir()},
		"it has no nowhere":  {Kind: fleet.WorkspaceWorktree, From: "file://" + dir, Rev: "nowhere"},
		"no such file or di": {Kind: fleet.WorkspaceCopy, From: filepath.Join(dir, "none")},
	} {
		s := &settings{}
		s.batch.job.Tasks = []fleet.Task{{ID: "t", Workspace: &w}}
		_, err := s.pack(t.Context(), t.TempDir())
		require.ErrorContains(t, err, says)
	}
	_, err := (&capped{&bytes.Buffer{}, 3}).Write([]byte("four"))
	require.ErrorContains(t, err, "256 MB")
}
