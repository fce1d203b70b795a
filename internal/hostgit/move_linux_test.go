package hostgit_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/hostgit"
)

// worktrees makes a worktree of a repository and one of its clone: the other machine.
func worktrees(t *testing.T, branch string) (from, to *hostgit.Dir, base string) {
	t.Helper()
	repo := repository(t)
	clone, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	shell(t, clone, "git clone -q "+repo+" .")
	base = shell(t, repo, "git rev-parse HEAD")
	g := host()
	for _, of := range []struct {
		repo string
		d    **hostgit.Dir
	}{{repo, &from}, {clone, &to}} {
		r, err := g.Find(t.Context(), of.repo)
		require.NoError(t, err)
		*of.d, err = g.Make(filepath.Join(t.TempDir(), "own"), filepath.Join(filepath.Dir(of.repo), filepath.Base(of.repo)+"-work"), r)
		require.NoError(t, err)
		require.NoError(t, (*of.d).AddWorktree(t.Context(), base, "w", ""))
	}
	if branch != "" {
		shell(t, top(from), "git switch -qc "+branch)
	}
	return from, to, base
}

func top(d *hostgit.Dir) string { return d.Repo().Top + "-work" }

// The commits of a working tree come with it, on their branch unless the repository has another one with the name.
func TestMove(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		branch, before, work, want string
	}{
		"detached":              {"", "", "echo two >a.txt; mkdir d; echo n >d/n; git add .; git commit -qm three; git commit -q --allow-empty -m four", "HEAD"},
		"a branch":              {"fix/it", "", "git rm -q a.txt; git commit -qm three", "fix/it"},
		"the branch is another": {"fix/it", "git branch fix/it", "git rm -q a.txt; git commit -qm three", "HEAD"},
		"a part of the name":    {"fix/it", "git branch fix", "git rm -q a.txt; git commit -qm three", "HEAD"},
		"back":                  {"", "", "git checkout -q HEAD^", "HEAD"},
		"nothing":               {"", "", "true", "HEAD"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to, base := worktrees(t, c.branch)
			shell(t, to.Repo().Top, "true; "+c.before)
			shell(t, top(from), c.work)
			there, err := from.Repo().Worktree(top(from))
			require.NoError(t, err)
			file := filepath.Join(t.TempDir(), "bundle")
			head, err := from.Bundle(t.Context(), there, base, file)
			require.NoError(t, err)
			if _, err := os.Stat(file); err != nil {
				file = ""
			}
			here, err := to.Repo().Worktree(top(to))
			require.NoError(t, err)
			require.NoError(t, to.Move(t.Context(), here, head, file, false))
			for _, look := range []string{"git rev-parse HEAD", "git status --porcelain", "git ls-files -s", "cat a.txt d/n 2>&1 || true"} {
				assert.Equal(t, shell(t, top(from), look), shell(t, top(to), look), look)
			}
			assert.Equal(t, c.want, shell(t, top(to), "git rev-parse --abbrev-ref HEAD"))
			assert.Empty(t, shell(t, top(to), "git fsck --no-dangling 2>&1 | grep -v notice: || true"))
		})
	}
}

// In a copy of the repository, which no other task uses, a branch with the same name is moved to the new commit.
func TestMoveAlone(t *testing.T) {
	t.Parallel()
	repo := repository(t)
	copied, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	base := shell(t, repo, "git rev-parse HEAD")
	shell(t, copied, "cp -a "+repo+"/. .")
	shell(t, repo, "echo two >a.txt; git commit -qam three")
	g := host()
	dirs := map[string]*hostgit.Dir{}
	for _, at := range []string{repo, copied} {
		r, err := g.Find(t.Context(), at)
		require.NoError(t, err)
		dirs[at], err = g.Make(filepath.Join(t.TempDir(), "own"), at, r)
		require.NoError(t, err)
		require.NoError(t, dirs[at].Learn(t.Context(), base))
	}
	file := filepath.Join(t.TempDir(), "bundle")
	head, err := dirs[repo].Bundle(t.Context(), dirs[repo].Repo(), base, file)
	require.NoError(t, err)
	require.NoError(t, dirs[copied].Move(t.Context(), dirs[copied].Repo(), head, file, true))
	assert.Equal(t, "main", shell(t, copied, "git rev-parse --abbrev-ref HEAD"))
	assert.Equal(t, shell(t, repo, "git rev-parse HEAD; cat a.txt"), shell(t, copied, "git rev-parse HEAD; cat a.txt"))
	assert.Empty(t, shell(t, copied, "git status --porcelain"))
}

// Nothing that comes with a working tree is run, and a HEAD with a path is refused.
func TestHostileMoves(t *testing.T) {
	t.Parallel()
	from, to, base := worktrees(t, "")
	mark := filepath.Join(t.TempDir(), "ran")
	shell(t, to.Repo().Top, "git config filter.f.smudge 'touch "+mark+"; cat'; git config filter.f.clean cat; printf '#!/bin/sh\ntouch "+mark+"' >.git/hooks/post-checkout; chmod +x .git/hooks/post-checkout")
	shell(t, top(from), "echo '* filter=f' >.gitattributes; echo new >b.txt; git add .; git commit -qm evil")
	there, err := from.Repo().Worktree(top(from))
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "bundle")
	head, err := from.Bundle(t.Context(), there, base, file)
	require.NoError(t, err)
	here, err := to.Repo().Worktree(top(to))
	require.NoError(t, err)
	for _, bad := range []hostgit.Head{{Hash: "--upload-pack=x"}, {Hash: head.Hash, Ref: "refs/heads/../../config"}, {Hash: head.Hash, Ref: "refs/tags/x"}, {Hash: head.Hash, Ref: "HEAD"}} {
		require.Error(t, to.Move(t.Context(), here, bad, file, true), "%v", bad)
	}
	require.Error(t, to.Move(t.Context(), here, hostgit.Head{Hash: head.Hash}, "", false), "the commits are not there")
	cut, err := os.ReadFile(file)
	require.NoError(t, err)
	broken := filepath.Join(t.TempDir(), "broken")
	require.NoError(t, os.WriteFile(broken, cut[:len(cut)-30], 0o600))
	require.Error(t, to.Move(t.Context(), here, head, broken, false))
	other := repository(t)
	secret := shell(t, other, "echo s >secret; git add .; git commit -qm secret; git rev-parse HEAD")
	require.NoError(t, os.WriteFile(broken, []byte("gitdir: "+other+"/.git\n"), 0o600))
	require.ErrorContains(t, to.Move(t.Context(), here, hostgit.Head{Hash: secret}, broken, false), "not a bundle")
	assert.Equal(t, "no", shell(t, top(to), "git cat-file -e "+secret+" 2>/dev/null || echo no"), "git would follow the file to another repository")
	require.NoError(t, to.Move(t.Context(), here, head, file, false))
	assert.FileExists(t, filepath.Join(top(to), "b.txt"))
	assert.NoFileExists(t, mark)
}

// Commits that git does not make are refused, and the working tree stays as it was. Nothing is written outside of it.
func TestHostileCommits(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	tree := func(entry, name string) string { // git mktree refuses such names
		return `b=$(echo evil | git hash-object -w --stdin); l=$(printf ` + outside + ` | git hash-object -w --stdin); d=$(printf "100644 blob $b\tx\n" | git mktree)
raw() { printf "$1 $2\0"; printf %s "$3" | sed 's/../\\x&/g' | xargs -0 printf %b; }
t=$( { ` + entry + `; } | git hash-object -t tree --literally -w --stdin); git update-ref HEAD $(git commit-tree -p HEAD -m ` + name + ` $t)`
	}
	for name, work := range map[string]string{
		"a file of git":          tree(`raw 40000 .git $d`, "evil"),
		"other letters":          tree(`raw 40000 .GIT $d`, "evil"),
		"above":                  tree(`raw 40000 .. $d`, "evil"),
		"a path":                 tree(`raw 100644 ../x $b`, "evil"),
		"a link and a directory": tree(`raw 120000 d $l; raw 40000 d $d`, "evil"),
		"git's modules":          tree(`raw 120000 .gitmodules $l`, "evil"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to, base := worktrees(t, "")
			shell(t, top(from), work)
			there, err := from.Repo().Worktree(top(from))
			require.NoError(t, err)
			file := filepath.Join(t.TempDir(), "bundle")
			head, err := from.Bundle(t.Context(), there, base, file)
			require.NoError(t, err)
			require.NotEqual(t, base, head.Hash)
			here, err := to.Repo().Worktree(top(to))
			require.NoError(t, err)
			before := shell(t, top(to), "cat .git; git rev-parse HEAD; ls -A; ls -A ..")
			err = to.Move(t.Context(), here, head, file, false)
			if name == "a link and a directory" { // git takes one of the two
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, "invalid path")
				assert.Equal(t, before, shell(t, top(to), "cat .git; git rev-parse HEAD; ls -A; ls -A .."))
			}
			left, err := os.ReadDir(outside)
			require.NoError(t, err)
			assert.Empty(t, left)
		})
	}
}
