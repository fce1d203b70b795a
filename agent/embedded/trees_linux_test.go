package embedded_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/model/modeltest"
)

// gitIn runs the user's git.
func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=u", "-c", "user.email=u@localhost"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "git %v: %s", args, out)
	return strings.TrimSpace(string(out))
}

// A sub-agent has a working tree on a branch. It is removed if nothing has changed in it, whether
// files that git knows, new ones, or commits; else it stays, and the report says where it is.
func TestWorkingTrees(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		command string
		stays   bool
	}{
		"nothing":        {"git status; cat a.txt", false},
		"only ignored":   {"touch x.log", false},
		"a file":         {"echo more >> a.txt", true},
		"a new file":     {"mkdir d; touch d/new", true},
		"a commit":       {"echo c >> a.txt; git -c user.name=s -c user.email=s@localhost commit -qam c", true},
		"another branch": {"git checkout -q -b other", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, o := teamed(t, map[string][]*modeltest.Answer{
				"main": answers(modeltest.Say(agentCall("job", "isolation", "worktree")), reports("done")),
				"job":  answers(modeltest.Say(subBash(c.command+"; pwd")), reports("ok")),
			})
			require.NoError(t, os.WriteFile(filepath.Join(o.Cwd, "a.txt"), []byte("one\n"), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(o.Cwd, ".gitignore"), []byte("*.log\n"), 0o600))
			gitIn(t, o.Cwd, "init", "-q")
			gitIn(t, o.Cwd, "add", ".")
			gitIn(t, o.Cwd, "commit", "-qm", "first")
			session := m.open(t, o)
			require.False(t, m.ask(t, session, "main").IsError)
			job := m.asked("job")
			require.Len(t, job, 2)
			dir := lastLine(resultText(t, job[1]))
			assert.Equal(t, filepath.Join(o.Cwd, ".claude/worktrees"), filepath.Dir(dir), "%s", resultText(t, job[1]))
			report := resultText(t, m.asked("main")[1])
			branches := gitIn(t, o.Cwd, "for-each-ref", "--format=%(refname:short)", "refs/heads/worktree-*")
			list := gitIn(t, o.Cwd, "worktree", "list")
			if c.stays {
				assert.Contains(t, report, "worktreePath: "+dir)
				assert.Contains(t, report, "worktreeBranch: worktree-"+filepath.Base(dir))
				assert.DirExists(t, dir)
				assert.NotEmpty(t, branches)
				assert.Contains(t, list, dir)
				return
			}
			assert.NotContains(t, report, "worktreePath")
			assert.NoDirExists(t, dir)
			assert.Empty(t, branches)
			assert.NotContains(t, list, dir)
		})
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// No gate is asked when a working tree is made. So what an agent, or the maker of the directory, has
// written into a repository runs nothing then, and no link leads the tree elsewhere.
func TestARepositoryRunsNothing(t *testing.T) {
	t.Parallel()
	setup := func(t *testing.T) (m *team, dir, ran string, play func()) {
		m, o := teamed(t, map[string][]*modeltest.Answer{
			"main": answers(modeltest.Say(agentCall("job", "isolation", "worktree")), reports("done")),
			"job":  answers(modeltest.Say(modeltest.Call("Read", map[string]any{"file_path": "a.txt"})), reports("ok")),
		})
		require.NoError(t, os.WriteFile(filepath.Join(o.Cwd, "a.txt"), []byte("one\n"), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(o.Cwd, ".gitattributes"), []byte("* filter=f diff=f\n"), 0o600))
		gitIn(t, o.Cwd, "init", "-q")
		gitIn(t, o.Cwd, "add", ".")
		gitIn(t, o.Cwd, "commit", "-qm", "first")
		return m, o.Cwd, filepath.Join(t.TempDir(), "ran"), func() {
			require.False(t, m.ask(t, m.open(t, o), "main").IsError)
		}
	}
	for name, poison := range map[string]func(t *testing.T, dir, run string){
		"a filter": func(t *testing.T, dir, run string) {
			for _, of := range []string{"smudge", "clean", "process"} {
				gitIn(t, dir, "config", "filter.f."+of, run)
			}
		},
		"a monitor of files": func(t *testing.T, dir, run string) { gitIn(t, dir, "config", "core.fsmonitor", run) },
		"hooks": func(t *testing.T, dir, run string) {
			for _, hook := range []string{"post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc"} {
				require.NoError(t, os.WriteFile(filepath.Join(dir, ".git/hooks", hook), []byte("#!/bin/sh\n"+run+"\n"), 0o700))
			}
		},
		"an included file": func(t *testing.T, dir, run string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "more"), []byte("[filter \"f\"]\n\tsmudge = "+run+"\n\tclean = "+run+"\n"), 0o600))
			gitIn(t, dir, "config", "include.path", filepath.Join(dir, "more"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, dir, ran, play := setup(t)
			poison(t, dir, "touch "+ran)
			play()
			assert.NoFileExists(t, ran)
			assert.Contains(t, resultText(t, m.asked("job")[1]), "one")
		})
	}
	t.Run("a link", func(t *testing.T) {
		t.Parallel()
		m, dir, _, play := setup(t)
		outside := t.TempDir()
		require.NoError(t, os.Symlink(outside, filepath.Join(dir, ".claude")))
		play()
		assert.Contains(t, resultText(t, m.asked("main")[1]), "Failed to create worktree")
		entries, err := os.ReadDir(outside)
		require.NoError(t, err)
		assert.Empty(t, entries)
	})
}
