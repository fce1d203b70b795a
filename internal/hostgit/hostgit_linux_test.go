package hostgit_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/hostgit"
)

func shell(t *testing.T, dir, line string) string {
	t.Helper()
	c := exec.Command("sh", "-ec", line)
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.com", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.com", "GIT_ALLOW_PROTOCOL=file")
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return strings.TrimSpace(string(out))
}

func repository(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	shell(t, dir, "git init -q -b main; git config maintenance.auto false; echo one >a.txt; git add .; git commit -qm one; git tag v1; git commit -q --allow-empty -m two")
	return dir
}

func host() *hostgit.Git {
	return &hostgit.Git{Environ: append(os.Environ(), "GIT_DIR=/nowhere", "GIT_INDEX_FILE=/nowhere"), Run: func(ctx context.Context, c hostgit.Call) (string, error) {
		cmd := exec.CommandContext(ctx, "git", c.Args...)
		cmd.Dir, cmd.Env = c.Dir, c.Env
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			err = errors.New(strings.Join(c.Args, " ") + ": " + err.Error() + ": " + errs.String())
		}
		return string(out), err
	}}
}

// Find finds what git finds.
func TestFind(t *testing.T) {
	t.Parallel()
	repo := repository(t)
	shell(t, repo, "mkdir -p a/b; git worktree add -q --detach ../linked; git clone -q --bare . ../bare.git; git submodule --quiet add "+repo+" sub; git init -q --separate-git-dir ../apart.git ../apart")
	base := filepath.Dir(repo)
	for _, dir := range []string{repo, repo + "/a/b", base + "/linked", base + "/bare.git", repo + "/sub", base + "/apart"} {
		r, err := hostgit.Find(dir)
		require.NoError(t, err, dir)
		assert.Equal(t, shell(t, dir, "git rev-parse --absolute-git-dir"), r.GitDir, dir)
		common, err := filepath.EvalSymlinks(shell(t, dir, "cd \"$(git rev-parse --git-common-dir)\"; pwd -P"))
		require.NoError(t, err)
		assert.Equal(t, common, r.Common, dir)
		if r.Top != "" {
			assert.Equal(t, shell(t, dir, "git rev-parse --show-toplevel"), r.Top)
		} else {
			assert.Equal(t, "true", shell(t, dir, "git rev-parse --is-bare-repository"), dir)
		}
	}
	for name, before := range map[string]string{
		"none": "true", "a file": "echo x >.git", "a pipe": "mkfifo .git", "nowhere": "echo 'gitdir: /nowhere' >.git", "a HEAD that is a pipe": "git init -q; rm .git/HEAD; mkfifo .git/HEAD",
	} {
		dir := t.TempDir()
		shell(t, dir, before)
		_, err := hostgit.Find(dir)
		assert.Error(t, err, name)
	}
}

// Settings that name programs, files or other places are not taken over.
func TestSettings(t *testing.T) {
	t.Parallel()
	repo := repository(t)
	shell(t, repo, `
		git config core.fsmonitor /evil; git config core.hooksPath /evil; git config core.sshCommand /evil; git config core.worktree /evil; git config core.attributesFile /evil
		git config filter.x.clean /evil; git config diff.x.textconv /evil; git config include.path /evil; git config credential.helper /evil; git config alias.x '!evil'
		git config remote.origin.receivepack /evil; git config remote.origin.url https://example.com/a.git; git config remote.bad.url 'ext::sh -c evil'; git config remote.dash.url -evil
		git config url.ext::evil.insteadOf https://good; git config core.autocrlf input; git config 'branch.a"b\c.merge' refs/heads/x; git config user.name "A \"B\" \\ # ; C"; git config extensions.objectFormat sha1`)
	r, err := host().Find(t.Context(), repo)
	require.NoError(t, err)
	d, err := host().Make(filepath.Join(t.TempDir(), "own"), repo, r)
	require.NoError(t, err)
	config := shell(t, d.Path(), "git config --file config --list")
	assert.NotContains(t, config, "evil")
	for _, line := range []string{"remote.origin.url=https://example.com/a.git", "core.autocrlf=input", `branch.a"b\c.merge=refs/heads/x`, `user.name=A "B" \ # ; C`, "core.hookspath=/dev/null", "core.repositoryformatversion=1"} {
		assert.Contains(t, strings.Split(config, "\n"), line)
	}
}

func TestCommit(t *testing.T) {
	t.Parallel()
	repo := repository(t)
	shell(t, repo, "git branch other HEAD~1; git pack-refs --all; git branch loose")
	for _, rev := range []string{"", "HEAD", "HEAD~1", "v1", "other", "loose", "refs/heads/main", "main^{tree}~0"} {
		r, err := host().Find(t.Context(), repo)
		require.NoError(t, err)
		d, err := host().Make(filepath.Join(t.TempDir(), "own"), repo, r)
		require.NoError(t, err)
		got, err := d.Commit(t.Context(), rev)
		if strings.Contains(rev, "tree") {
			assert.Error(t, err)
			continue
		}
		require.NoError(t, err, rev)
		want := rev
		if rev == "" {
			want = "HEAD"
		}
		assert.Equal(t, shell(t, repo, "git rev-parse '"+want+"^{commit}'"), got, rev)
	}
}

// References that an agent has replaced are neither followed nor waited for.
func TestHostileReferences(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]string{
		"a link":            "rm .git/refs/heads/main; ln -s /etc/passwd .git/refs/heads/main",
		"a pipe":            "rm .git/refs/heads/main; mkfifo .git/refs/heads/main",
		"out of the place":  "echo 'ref: refs/../../../a.txt' >.git/HEAD",
		"an absolute one":   "echo 'ref: /etc/passwd' >.git/HEAD",
		"a circle":          "echo 'ref: refs/heads/main' >.git/refs/heads/main",
		"no reference":      "echo x >.git/HEAD",
		"packed, a pipe":    "rm .git/refs/heads/main; mkfifo .git/packed-refs",
		"HEAD, a directory": "rm .git/HEAD; mkdir .git/HEAD",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := repository(t)
			r, err := hostgit.Find(repo)
			require.NoError(t, err)
			shell(t, repo, plant)
			head, err := r.Head()
			require.Error(t, err, "%v", head)
			assert.Empty(t, head.Hash)
		})
	}
}

// A directory of the host is made anew each time but for its index, whatever was put into it.
func TestADirectoryIsMadeAnew(t *testing.T) {
	t.Parallel()
	repo, own := repository(t), filepath.Join(t.TempDir(), "own")
	r, err := host().Find(t.Context(), repo)
	require.NoError(t, err)
	_, err = host().Make(own, repo, r)
	require.NoError(t, err)
	victim := filepath.Join(t.TempDir(), "victim")
	require.NoError(t, os.WriteFile(victim, []byte("precious\n"), 0o600))
	shell(t, own, "git config --file config core.fsmonitor /evil; mkdir hooks; touch hooks/pre-push; rm info/exclude HEAD; ln -s "+victim+" info/exclude; ln -s "+victim+" HEAD; ln -s "+victim+" index")
	_, err = host().Open(own, repo)
	require.NoError(t, err)
	assert.NotContains(t, shell(t, own, "cat config"), "evil")
	assert.NoDirExists(t, filepath.Join(own, "hooks"))
	shell(t, repo, "touch new")
	for _, top := range []string{repo, ""} {
		d, err := host().Open(own, top)
		require.NoError(t, err)
		changed, err := d.Changed(t.Context(), shell(t, repo, "git rev-parse HEAD"), repo)
		require.NoError(t, err)
		assert.Equal(t, []string{"new"}, changed)
	}
	text, err := os.ReadFile(victim)
	require.NoError(t, err)
	assert.Equal(t, "precious\n", string(text))
	st, err := os.Lstat(own)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), st.Mode().Perm())
	assert.Equal(t, uint32(os.Getuid()), st.Sys().(*syscall.Stat_t).Uid)
}

func TestClean(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []string{"HOME=/h", "GIT_SSH_COMMAND=ssh", "PATH=/bin"},
		hostgit.Clean([]string{"HOME=/h", "GIT_DIR=/x", "GIT_WORK_TREE=/x", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=a", "GIT_SSH_COMMAND=ssh", "GIT_EXTERNAL_DIFF=/x", "PATH=.:/bin::bin"}))
}
