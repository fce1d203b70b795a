package fleet_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// onAccept is what the journal says of a task's command.
func onAccept(t *testing.T, out, id string) fleet.OnAccept {
	t.Helper()
	s, err := fleet.ReadJob(out)
	require.NoError(t, err)
	for _, task := range s.Tasks {
		if task.ID == id {
			require.NotNil(t, task.OnAccept)
			return *task.OnAccept
		}
	}
	require.Fail(t, "no such task")
	return fleet.OnAccept{}
}

func pushable(t *testing.T) (repo, remote string) {
	t.Helper()
	repo, remote = repository(t), filepath.Join(t.TempDir(), "remote.git")
	shell(t, repo, "git init -q --bare "+remote+"; git remote add origin "+remote)
	return repo, remote
}

// The command pushes what the agent has committed, or commits what it has left, and runs none
// of what the agent has planted; nor does it push elsewhere.
func TestOnAcceptPushes(t *testing.T) {
	t.Parallel()
	const push = "git add -A; git diff --cached --quiet || git -c user.name=t -c user.email=t@example.com commit -qm done; git push -q origin HEAD:refs/heads/$TROUPE_TASK"
	plants := map[string]string{
		"nothing":    "true",
		"hooks":      "h=$(git rev-parse --git-common-dir)/hooks; mkdir -p $h; for n in pre-push pre-commit post-commit commit-msg reference-transaction; do cp $P $h/$n; done; git config core.hooksPath $h",
		"settings":   "git config core.fsmonitor $P; git config core.sshCommand $P; git config credential.helper $P; git config filter.x.clean $P; printf '* filter=x\\n' >.gitattributes; git config commit.gpgsign true; git config gpg.program $P; git config alias.push !$P",
		"the remote": "git init -q --bare $P.git; git config remote.origin.pushurl $P.git; git config url.$P.git.insteadOf $(git config remote.origin.url); git config remote.origin.receivepack $P",
	}
	for _, kind := range []fleet.WorkspaceKind{fleet.WorkspaceWorktree, fleet.WorkspaceCopy, ""} {
		for name, plant := range plants {
			for work, line := range map[string]string{"committed": "echo two >>a.txt; " + commit, "left": "echo two >>a.txt"} {
				t.Run(strings.Join([]string{string(kind), name, work}, " "), func(t *testing.T) {
					t.Parallel()
					repo, remote := pushable(t)
					host, out := t.TempDir(), t.TempDir()
					program, proof := filepath.Join(host, "program"), filepath.Join(host, "ran")
					require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\ntouch "+proof+"\ncat\n"), 0o700))
					dir := repo
					if kind != "" {
						dir = filepath.Join(out, "workspaces", "t0", "1")
					}
					o := worker(t, dir, line+"\nP="+program+"; "+plant+"\nrm -f "+proof, scripted.Text("done"))
					_, err := collect(t, fleet.Job{Tasks: tasks(1), Options: o, Out: out, Attempts: 1, OnAccept: push, Workspace: &fleet.Workspace{Kind: kind, From: repo}})
					require.NoError(t, err)
					said := onAccept(t, out, "t0")
					assert.Equal(t, fleet.OnAcceptState("done"), said.State, "%s %s", said.Error, said.Output)
					assert.NoFileExists(t, proof, "a program of the agent's has run")
					pushed, err := exec.Command("git", "--git-dir", remote, "show", "t0:a.txt").CombinedOutput()
					require.NoError(t, err, "%s", pushed)
					assert.Equal(t, "one\ntwo\n", string(pushed))
					left, err := os.ReadDir(host)
					require.NoError(t, err)
					for _, e := range left {
						refs, _ := exec.Command("git", "--git-dir", filepath.Join(host, e.Name()), "for-each-ref").Output()
						assert.Empty(t, string(refs), "pushed elsewhere")
					}
				})
			}
		}
	}
}

// A repository that the agent has made is not used.
func TestOnAcceptWithoutARepository(t *testing.T) {
	t.Parallel()
	for _, kind := range []fleet.WorkspaceKind{fleet.WorkspaceCopy, ""} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			from, out := t.TempDir(), t.TempDir()
			dir := from
			if kind != "" {
				dir = filepath.Join(out, "workspaces", "t0", "1")
			}
			proof := filepath.Join(t.TempDir(), "ran")
			line := "git init -q; printf '#!/bin/sh\\ntouch " + proof + "\\n' >.git/hooks/pre-commit; chmod 700 .git/hooks/pre-commit"
			_, err := collect(t, fleet.Job{
				Tasks: tasks(1), Options: worker(t, dir, line, scripted.Text("done")), Out: out, OnAccept: "git commit --allow-empty -m x",
				Workspace: &fleet.Workspace{Kind: kind, From: from},
			})
			require.NoError(t, err)
			said := onAccept(t, out, "t0")
			assert.Equal(t, fleet.OnAcceptState("failed"), said.State)
			assert.Contains(t, said.Output, "not a git repository")
			assert.NoFileExists(t, proof)
		})
	}
}

func TestOnAccept(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "of-the-agents")
	t.Setenv("GH_TOKEN", "of-the-host")
	t.Setenv("MY_TOKEN", "of-the-options")
	t.Setenv("GIT_DIR", "/nowhere")
	for name, c := range map[string]struct {
		command, verify string
		kind            fleet.WorkspaceKind
		remove          bool
		state           fleet.OnAcceptState // "": it does not run
		output          string
		gone            bool
	}{
		"done":            {command: "pwd; echo $TROUPE_TASK", state: "done", output: "t0"},
		"failed":          {command: "echo no; exit 3", state: "failed", output: "no"},
		"rejected":        {command: "echo no", verify: "false"},
		"secrets":         {command: "echo [$ANTHROPIC_API_KEY$MY_TOKEN] $GH_TOKEN", state: "done", output: "[] of-the-host"},
		"removed":         {command: "test -f a.txt", kind: fleet.WorkspaceCopy, remove: true, state: "done", gone: true},
		"kept":            {command: "false", kind: fleet.WorkspaceCopy, remove: true, state: "failed"},
		"before teardown": {command: "test ! -e torn", state: "done"},
	} {
		t.Run(name, func(t *testing.T) {
			from, out := t.TempDir(), t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(from, "a.txt"), nil, 0o600))
			var ended []string
			o := backend()
			o.Env = map[string]string{"MY_TOKEN": "x"}
			job := fleet.Job{
				Tasks: tasks(1), Options: o, Out: out, Attempts: 1, OnAccept: c.command,
				Workspace: &fleet.Workspace{Kind: c.kind, From: from, Remove: c.remove, Teardown: "touch torn"},
				OnEvent: func(e fleet.Event) {
					if e.Kind == fleet.EventOnAccept {
						ended = append(ended, e.Detail)
					}
				},
			}
			if c.verify != "" {
				job.Verify = &fleet.Verify{Command: c.verify}
			}
			results, err := collect(t, job)
			require.NoError(t, err)
			line := read(t, out, "results.jsonl")
			if c.state == "" {
				assert.Nil(t, results["t0"].OnAccept)
				assert.NotContains(t, line, "onAccept")
				return
			}
			said := onAccept(t, out, "t0")
			assert.Equal(t, c.state, said.State, said.Error)
			assert.Contains(t, said.Output, c.output)
			assert.Contains(t, line, `"onAccept":{"state":"`+string(c.state))
			require.Len(t, ended, 1)
			assert.True(t, strings.HasPrefix(ended[0], string(c.state)))
			if c.gone {
				assert.NoDirExists(t, results["t0"].Workspace)
			} else {
				assert.DirExists(t, results["t0"].Workspace)
			}
		})
	}
}

// Somebody may have it run once more, also after the end of the job.
func TestOnAcceptAgain(t *testing.T) {
	t.Parallel()
	from, out := t.TempDir(), t.TempDir()
	job := fleet.Job{Tasks: tasks(2), Options: backend(), Out: out, OnAccept: "echo x >>$TROUPE_TASK; test -e fixed", Workspace: &fleet.Workspace{From: from}}
	h, err := fleet.Start(t.Context(), job)
	require.NoError(t, err)
	require.ErrorIs(t, h.RunOnAccept(t.Context(), "none"), fleet.ErrNoTask)
	for _, err := range h.Results(t.Context()) {
		require.NoError(t, err)
	}
	require.ErrorIs(t, h.RunOnAccept(t.Context(), "t0"), fleet.ErrJobOver)
	assert.Equal(t, fleet.OnAcceptState("failed"), onAccept(t, out, "t0").State)

	require.NoError(t, os.WriteFile(filepath.Join(from, "fixed"), nil, 0o600))
	require.ErrorIs(t, fleet.Amend(t.Context(), out, fleet.Amendment{OnAccept: []string{"none"}}), fleet.ErrNoTask)
	require.NoError(t, fleet.Amend(t.Context(), out, fleet.Amendment{OnAccept: []string{"t0"}}))
	require.ErrorIs(t, fleet.Amend(t.Context(), out, fleet.Amendment{OnAccept: []string{"t0"}}), fleet.ErrOnAcceptRuns)
	assert.Equal(t, fleet.OnAcceptState("pending"), onAccept(t, out, "t0").State)
	job.Resume = true
	for range 2 { // and it is not run a third time
		_, err = collect(t, job)
		require.NoError(t, err)
		assert.Equal(t, fleet.OnAcceptState("done"), onAccept(t, out, "t0").State)
		assert.Equal(t, fleet.OnAcceptState("failed"), onAccept(t, out, "t1").State, "only what was asked for")
		assert.Equal(t, "x\nx\n", read(t, from, "t0"))
		assert.Equal(t, "x\n", read(t, from, "t1"))
	}
}

// A job that runs takes the decision at once.
func TestOnAcceptAgainWhileTheJobRuns(t *testing.T) {
	t.Parallel()
	from := t.TempDir()
	gate := filepath.Join(from, "gate")
	require.NoError(t, syscall.Mkfifo(gate, 0o600))
	all := tasks(2)
	all[1].Workspace = &fleet.Workspace{From: from, Setup: "read x <gate"}
	ended := make(chan string, 10)
	h, err := fleet.Start(t.Context(), fleet.Job{
		Tasks: all, Options: backend(), Out: t.TempDir(), Workspace: &fleet.Workspace{From: from}, OnAccept: "echo x >>$TROUPE_TASK; test -e fixed",
		OnEvent: func(e fleet.Event) {
			if e.Kind == fleet.EventOnAccept {
				ended <- e.Task + " " + strings.SplitN(e.Detail, ":", 2)[0]
			}
		},
	})
	require.NoError(t, err)
	assert.Equal(t, "t0 failed", <-ended)
	require.ErrorIs(t, h.RunOnAccept(t.Context(), "t1"), fleet.ErrNotAccepted)
	require.NoError(t, os.WriteFile(filepath.Join(from, "fixed"), nil, 0o600))
	require.NoError(t, h.RunOnAccept(t.Context(), "t0"))
	assert.Equal(t, "t0 done", <-ended)
	require.NoError(t, os.WriteFile(gate, []byte("go\n"), 0o600))
	states := map[string]fleet.OnAcceptState{}
	for r, err := range h.Results(t.Context()) {
		require.NoError(t, err)
		states[r.ID] = r.OnAccept.State
	}
	assert.Equal(t, fleet.OnAcceptState("done"), states["t0"], "a result that was not read yet says how it ended")
	assert.Equal(t, "x\nx\n", read(t, from, "t0"))
}

// The command of a job that is killed may have had its effect: its state is unknown, and no
// resume runs it.
func TestKillDuringOnAccept(t *testing.T) {
	t.Parallel()
	from, out := t.TempDir(), t.TempDir()
	began := filepath.Join(from, "began")
	require.NoError(t, syscall.Mkfifo(began, 0o600))
	job := fleet.Job{Tasks: tasks(1), Options: backend(), Out: out, OnAccept: "echo x >>ran; echo x >began; exec sleep 600", Workspace: &fleet.Workspace{From: from}}
	h, err := fleet.Start(t.Context(), job)
	require.NoError(t, err)
	read(t, began)
	h.Kill()
	<-h.Done()
	assert.Equal(t, fleet.OnAcceptState("unknown"), onAccept(t, out, "t0").State)
	job.Resume = true
	results, err := collect(t, job)
	require.NoError(t, err)
	assert.Equal(t, fleet.OnAcceptState("unknown"), results["t0"].OnAccept.State)
	assert.Equal(t, "x\n", read(t, from, "ran"))
}

// Setups, verifiers, teardowns and the command after acceptance are started by
// Job.CommandSpawner; git is the host's.
func TestCommandSpawner(t *testing.T) {
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	var started atomic.Int32
	inside := sdk.SpawnThrough(func(c *session.Command) ([]string, func(context.Context) error, error) {
		started.Add(1)
		return append([]string{"env", "INSIDE=" + c.Dir}, c.Argv()...), nil, nil
	})
	const line = `test "$INSIDE" = "$(pwd -P)" && echo `
	results, err := collect(t, fleet.Job{
		Tasks: tasks(1), Options: backend(), Out: t.TempDir(), CommandSpawner: inside, OnAccept: line + "accepted >>" + dir + "/log",
		Workspace: &fleet.Workspace{Kind: fleet.WorkspaceWorktree, From: repo, Setup: line + "setup >>" + dir + "/log", Teardown: line + "teardown >>" + dir + "/log"},
		Verify:    &fleet.Verify{Command: line + "verify >>" + dir + "/log", Timeout: fleet.Duration(time.Minute)},
	})
	require.NoError(t, err)
	assert.Equal(t, fleet.Accepted, results["t0"].Status, results["t0"].Error)
	assert.Equal(t, []string{"setup", "verify", "accepted", "teardown"}, lines(read(t, dir, "log")))
	assert.EqualValues(t, 4, started.Load())
}

// A spawner of the user's that panics, or one whose processes do, ends the task that it is used for.
func TestACommandSpawnerThatPanics(t *testing.T) {
	t.Parallel()
	remove := func(context.Context) error { panic("odd removal") }
	for want, wrap := range map[string]func(*session.Command) ([]string, func(context.Context) error, error){
		"panic while handling Spawn: odd":                 func(*session.Command) ([]string, func(context.Context) error, error) { panic("odd") },
		"panic while handling Process.Sweep: odd removal": func(c *session.Command) ([]string, func(context.Context) error, error) { return c.Argv(), remove, nil },
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			results, err := collect(t, fleet.Job{
				Tasks: tasks(1), Options: backend(), Out: t.TempDir(), CommandSpawner: sdk.SpawnThrough(wrap),
				Workspace: &fleet.Workspace{From: t.TempDir(), Setup: "true"},
			})
			require.NoError(t, err)
			assert.Equal(t, fleet.BadWorkspace, results["t0"].Status)
			assert.Contains(t, results["t0"].Error, want)
		})
	}
}

// Of two people who have the command of an accepted task run again at the same time, one does.
func TestTwoPeopleRunACommandAgain(t *testing.T) {
	t.Parallel()
	disk, taken, release := slowRecord("repeat")
	ran := filepath.Join(t.TempDir(), "ran")
	all := tasks(2)
	all[1].Prompt = "wait"
	h, events := begun(t, fleet.Job{
		Tasks: all, Out: t.TempDir(), FS: disk, OnAccept: "echo x >>" + ran, Concurrency: 2,
		Options: backend(when("wait", scripted.Delay(time.Hour)), when("do", scripted.Text("done"))),
	})
	await(t, events, fleet.EventOnAccept, "t0")
	first := make(chan error, 1)
	go func() { first <- h.RunOnAccept(t.Context(), "t0") }()
	<-taken
	require.ErrorIs(t, second(t, func() error { return h.RunOnAccept(t.Context(), "t0") }, release), fleet.ErrOnAcceptRuns)
	require.NoError(t, <-first)
	await(t, events, fleet.EventOnAccept, "t0")
	h.Cancel()
	<-h.Done()
	assert.Equal(t, "x\nx\n", read(t, ran))
}

// A command that waits for its turn while its task begins anew is not run: the work that was not
// wanted is not pushed, and that of the new result is.
func TestOnAcceptOfAVoidResult(t *testing.T) {
	t.Parallel()
	from, out, log := t.TempDir(), t.TempDir(), t.TempDir()
	began, gate := filepath.Join(log, "began"), filepath.Join(log, "gate")
	require.NoError(t, syscall.Mkfifo(began, 0o600))
	require.NoError(t, syscall.Mkfifo(gate, 0o600))
	all := tasks(2)
	all[0].After = []string{"t1"}
	var once sync.Once
	h, events := begun(t, fleet.Job{
		Tasks: all, Options: backend(), Out: out, Setups: 1, Workspace: &fleet.Workspace{Kind: fleet.WorkspaceCopy, From: from, Remove: true},
		OnAccept: "pwd >>" + log + "/$TROUPE_TASK; [ $TROUPE_TASK = t0 ] || { echo x >" + began + "; read x <" + gate + "; }",
		Before: func(_ context.Context, task *fleet.Task) (_ fleet.Decision, err error) {
			if task.ID == "t0" {
				once.Do(func() { _, err = os.ReadFile(began) }) // t1 has the turn
			}
			return fleet.Decision{}, err
		},
	})
	await(t, events, fleet.EventFinished, "t0")
	require.NoError(t, h.Requeue(t.Context(), "t0"))
	await(t, events, fleet.EventFinished, "t0")
	require.NoError(t, os.WriteFile(gate, []byte("go\n"), 0o600))
	<-h.Done()
	at := filepath.Join(out, "workspaces", "t0")
	assert.Equal(t, filepath.Join(at, "2")+"\n", read(t, log, "t0"))
	assert.Equal(t, fleet.OnAcceptState("done"), onAccept(t, out, "t0").State)
	assert.NoDirExists(t, filepath.Join(at, "1"))
	assert.NoDirExists(t, filepath.Join(at, "2"))
}
