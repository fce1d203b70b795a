package fleet_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
)

// The host's git runs nothing that an agent has put into its workspace, or into what the
// workspace shares with others, and its diff says what has changed all the same.
func TestHostGitIgnoresWhatAgentsWrite(t *testing.T) {
	t.Parallel()
	attributes := "printf '* filter=x diff=x merge=x\n' >.gitattributes;"
	drivers := func(set string) string {
		return attributes + set + " filter.x.clean $P;" + set + " filter.x.smudge $P;" + set + " filter.x.process $P;" + set + " diff.x.textconv $P;" + set + " diff.x.command $P;"
	}
	for name, plant := range map[string]string{
		"fsmonitor":         "git config core.fsmonitor $P",
		"drivers":           drivers("git config"),
		"external diff":     "git config diff.external $P; git config core.pager $P; git config pager.diff true",
		"include":           "printf '[core]\nfsmonitor = %s\n' $P >evil; git config include.path $PWD/evil",
		"worktree settings": "git config extensions.worktreeConfig true; git config --worktree core.fsmonitor $P",
		"hooks": "h=$(git rev-parse --git-common-dir)/hooks; mkdir -p $h; for n in post-checkout post-index-change pre-auto-gc reference-transaction; do cp $P $h/$n; done;" +
			"git config core.hooksPath $h",
		"a repository inside":   "git init -q n; cd n; git config core.fsmonitor $P; git -c core.fsmonitor=false -c user.name=x -c user.email=x@x commit -q --allow-empty -m x",
		"another git directory": "git init -q e; git -C e config core.fsmonitor $P; rm -rf .git; echo \"gitdir: $PWD/e/.git\" >.git",
		"a link":                "git init -q e; git -C e config core.fsmonitor $P; rm -rf .git; ln -s $PWD/e/.git .git",
		"what hides changes":    "printf '* -diff\n*.txt binary\n' >.gitattributes",
	} {
		for _, kind := range []fleet.WorkspaceKind{fleet.WorkspaceWorktree, fleet.WorkspaceCopy} {
			t.Run(fmt.Sprint(kind, " ", name), func(t *testing.T) {
				t.Parallel()
				host, out := t.TempDir(), t.TempDir()
				program, proof := filepath.Join(host, "program"), filepath.Join(host, "ran")
				require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\ntouch "+proof+"\ncat\n"), 0o700))
				tasks := []fleet.Task{{ID: "a", Prompt: "do"}, {ID: "b", Prompt: "do", After: []string{"a"}}}
				o := worker(t, filepath.Join(out, "workspaces", "a", "1"), "P="+program+"; echo two >>a.txt; echo new >new.txt;"+plant+"\nrm -f "+proof, scripted.Text("done"))
				results, err := collect(t, fleet.Job{Tasks: tasks, Options: o, Out: out, Attempts: 1, Workspace: &fleet.Workspace{Kind: kind, From: repository(t)}})
				require.NoError(t, err)
				assert.NoFileExists(t, proof, "the host has run it")
				for _, r := range results {
					assert.Equal(t, fleet.Accepted, r.Status, r.Error)
				}
				if r := results["a"]; r.Diff != "" {
					diff := read(t, out, r.Diff)
					assert.Contains(t, diff, "+two")
					assert.Contains(t, diff, "+new")
				} else {
					assert.Contains(t, []string{"another git directory", "a link"}, name, "there is a diff unless the workspace is no repository any more")
				}
			})
		}
	}
}

// A workspace that an agent has replaced by a link has no diff: it would be of other files.
func TestAWorkspaceThatIsALink(t *testing.T) {
	t.Parallel()
	for _, kind := range []fleet.WorkspaceKind{fleet.WorkspaceWorktree, fleet.WorkspaceCopy} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			out, other := t.TempDir(), repository(t)
			require.NoError(t, os.WriteFile(filepath.Join(other, "secret.txt"), []byte("precious\n"), 0o600))
			dir := filepath.Join(out, "workspaces", "t0", "1")
			o := worker(t, dir, "mv "+dir+" "+dir+".old; cp "+dir+".old/.git "+other+"/.git-of-it -r; ln -s "+other+" "+dir, scripted.Text("done"))
			results, err := collect(t, fleet.Job{Tasks: tasks(1), Options: o, Out: out, Attempts: 1, Workspace: &fleet.Workspace{Kind: kind, From: repository(t)}})
			require.NoError(t, err)
			assert.Empty(t, results["t0"].Diff)
		})
	}
}

// What an agent commits in a copy is part of the diff, as in a worktree.
func TestTheDiffOfACommit(t *testing.T) {
	t.Parallel()
	for _, kind := range []fleet.WorkspaceKind{fleet.WorkspaceWorktree, fleet.WorkspaceCopy} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			out := t.TempDir()
			o := worker(t, filepath.Join(out, "workspaces", "t0", "1"), "echo two >>a.txt; "+commit, scripted.Text("done"))
			results, err := collect(t, fleet.Job{Tasks: tasks(1), Options: o, Out: out, Workspace: &fleet.Workspace{Kind: kind, From: repository(t)}})
			require.NoError(t, err)
			assert.Contains(t, read(t, out, results["t0"].Diff), "+two")
		})
	}
}

// remarks are the warnings of a job.
func remarks(all *[]string) func(fleet.Event) {
	return func(e fleet.Event) {
		if e.Kind == fleet.EventWarning {
			*all = append(*all, e.Detail)
		}
	}
}

// The directory of the job may be in what it copies, and so may those of earlier jobs.
func TestACopyOfWhatHoldsTheJob(t *testing.T) {
	t.Parallel()
	from := t.TempDir()
	shell(t, from, "mkdir -p d/empty bin; echo one >d/a.txt; echo x >bin/run; chmod 755 bin/run; ln -s nowhere dangling; mkfifo pipe; mkdir old.out; touch old.out/journal.jsonl old.out/journal.lock")
	socket, err := net.Listen("unix", filepath.Join(from, "s.sock"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = socket.Close() })
	var warned []string
	out := filepath.Join(from, "tasks.out")
	results, err := collect(t, fleet.Job{
		Tasks: tasks(3), Options: backend(), Out: out, Attempts: 1, Workspace: &fleet.Workspace{Kind: fleet.WorkspaceCopy, From: from}, OnEvent: remarks(&warned),
		Verify: &fleet.Verify{Command: "test -x bin/run && test ! -x d/a.txt && test -d d/empty && test -L dangling && test ! -e tasks.out && test ! -e old.out && test ! -e pipe && test ! -e s.sock"},
	})
	require.NoError(t, err)
	for _, r := range results {
		assert.Equal(t, fleet.Accepted, r.Status, "%s %v", r.Error, r.Verdict)
	}
	require.Len(t, warned, 1, "once for all tasks: %v", warned)
	for _, word := range []string{"pipe, which is a named pipe", "s.sock, which is a socket", "old.out, which is the directory of another job"} {
		assert.Contains(t, warned[0], word)
	}
	assert.NotContains(t, warned[0], "tasks.out")
}

// A file that becomes a pipe while it is copied does not stop the job.
func TestACopyOfAPipe(t *testing.T) {
	t.Parallel()
	from := t.TempDir()
	require.NoError(t, syscall.Mkfifo(filepath.Join(from, "p"), 0o600))
	results, err := collect(t, fleet.Job{Tasks: tasks(1), Options: backend(), Out: t.TempDir(), Attempts: 1, Workspace: &fleet.Workspace{Kind: fleet.WorkspaceCopy, From: from}})
	require.NoError(t, err)
	assert.Equal(t, fleet.Accepted, results["t0"].Status, results["t0"].Error)
}

// The repository may list a worktree for a path whose directory is gone. Other worktrees
// stay, also those that git would prune.
func TestWorktreesOfARemovedOutput(t *testing.T) {
	t.Parallel()
	repo, out := repository(t), filepath.Join(t.TempDir(), "tasks.out")
	shell(t, repo, "mkdir sub; touch sub/b.txt; git add sub; git -c user.name=t -c user.email=t@example.com commit -qm two; git worktree add -q --detach "+repo+".other; mv "+repo+".other "+repo+".moved")
	for _, from := range []string{repo, repo, filepath.Join(repo, "sub")} {
		results, err := collect(t, fleet.Job{Tasks: tasks(2), Options: backend(), Out: out, Attempts: 1, Workspace: &fleet.Workspace{Kind: fleet.WorkspaceWorktree, From: from}})
		require.NoError(t, err)
		for _, r := range results {
			assert.Equal(t, fleet.Accepted, r.Status, r.Error)
		}
		shell(t, repo, "test $(git worktree list --porcelain | grep -c ^worktree) = 4")
		shell(t, filepath.Join(out, "workspaces", "t0", "1"), "test -z \"$(git status --porcelain)\"; git rev-parse HEAD")
		require.NoError(t, os.RemoveAll(out))
	}
}

// A task works in the directory of the worktree that stands for its own, and not at the top.
func TestAWorktreeOfASubdirectory(t *testing.T) {
	t.Parallel()
	repo := repository(t)
	shell(t, repo, "mkdir -p services/api services/new; echo x >services/api/main.go; git add -A; git -c user.name=t -c user.email=t@example.com commit -qm two; touch services/new/a")
	for name, c := range map[string]struct {
		from, rev string
		status    fleet.Status
		err       string
	}{
		"in the commit":     {"services/api", "", fleet.Accepted, ""},
		"not in the commit": {"services/new", "", fleet.BadWorkspace, "has no directory services/new"},
		"not in this one":   {"services/api", "HEAD~1", fleet.BadWorkspace, "has no directory services/api"},
		"no revision":       {"services/api", "--all", fleet.BadWorkspace, `there is no revision "--all"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := t.TempDir()
			work := filepath.Join(out, "workspaces", "t0", "1", "services", "api")
			results, err := collect(t, fleet.Job{
				Tasks: tasks(1), Options: worker(t, work, "echo y >>main.go; echo z >>../../a.txt", scripted.Text("done")), Out: out, Attempts: 1,
				Workspace: &fleet.Workspace{Kind: fleet.WorkspaceWorktree, From: filepath.Join(repo, c.from), Rev: c.rev, Setup: "test -f main.go", Teardown: "pwd >" + out + "/teardown"},
				Verify:    &fleet.Verify{Command: `test "$(pwd -P)" = "` + work + `"`},
			})
			require.NoError(t, err)
			r := results["t0"]
			assert.Equal(t, c.status, r.Status, r.Error)
			assert.Contains(t, r.Error, c.err)
			checked := fleet.Job{Tasks: tasks(3), Out: out, Workspace: &fleet.Workspace{Kind: fleet.WorkspaceWorktree, From: filepath.Join(repo, c.from), Rev: c.rev}}.CheckWorkspaces(t.Context())
			if c.err != "" {
				var wrong *fleet.TaskError
				require.ErrorAs(t, checked, &wrong)
				assert.Contains(t, wrong.Err, c.err)
				assert.Equal(t, 1, strings.Count(checked.Error(), c.err), "once for all tasks")
			} else {
				require.NoError(t, checked)
			}
			if c.err == "" {
				diff := read(t, out, r.Diff)
				assert.Contains(t, diff, "services/api/main.go")
				assert.Contains(t, diff, "b/a.txt", "all of the worktree is in the diff")
				assert.Equal(t, work, strings.TrimSpace(read(t, out, "teardown")))
			}
		})
	}
}

// What is not committed in the source is not in the worktrees, which is worth a remark: one.
func TestUncommittedFilesAreRemarked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ before, want string }{
		"nothing":   {"echo ignored >.gitignore; " + commit + "; touch ignored", ""},
		"changed":   {"echo x >>a.txt", "a.txt is not committed"},
		"staged":    {"echo x >>b.txt; git add b.txt", "b.txt is not committed"},
		"a job's":   {"mkdir -p s/old.out/git; touch s/old.out/journal.jsonl s/old.out/journal.lock s/old.out/git/x", ""},
		"many":      {"touch b c d e f", "b, c, d and 2 more are not committed"},
		"a program": {"git config core.fsmonitor $PWD/../ran; touch b", "b is not committed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := repository(t)
			shell(t, repo, c.before)
			var warned []string
			_, err := collect(t, fleet.Job{
				Tasks: tasks(3), Options: backend(), Out: filepath.Join(repo, "tasks.out"), OnEvent: remarks(&warned),
				Workspace: &fleet.Workspace{Kind: fleet.WorkspaceWorktree, From: repo},
			})
			require.NoError(t, err)
			if c.want == "" {
				assert.Empty(t, warned)
				return
			}
			require.Len(t, warned, 1)
			assert.Contains(t, warned[0], c.want)
		})
	}
}

// A process that resumes a job finds them too.
func TestUncommittedFilesAfterAResume(t *testing.T) {
	t.Parallel()
	repo, out := repository(t), t.TempDir()
	shell(t, repo, "touch b")
	for _, resume := range []bool{false, true} {
		var warned []string
		job := fleet.Job{
			Tasks: tasks(2), Options: backend(), Out: out, OnEvent: remarks(&warned), Resume: resume,
			Workspace: &fleet.Workspace{Kind: fleet.WorkspaceWorktree, From: repo},
		}
		if !resume {
			job.Sample = 1
		}
		_, err := collect(t, job)
		assert.Equal(t, resume, err == nil, "%v", err)
		require.Len(t, warned, 1)
		assert.Contains(t, warned[0], "b is not committed")
	}
}
