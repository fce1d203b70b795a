package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/agent-troupe/troupe/internal/hostgit"
	"github.com/agent-troupe/troupe/sdk"
)

// Workspace is where a task works. Each start of a task that does not continue in an
// earlier workspace gets its own, below Job.Out; it is never used again by another task,
// and stays there unless Remove is set.
type Workspace struct {
	// Kind says how the workspace is made. Default: "", the directory itself, so
	// that tasks see each other's changes.
	Kind WorkspaceKind `json:"kind,omitempty"`
	// From is the directory to use or to copy, or one in the git repository: the task then
	// works in the same directory of the worktree, which the commit must have. A copy leaves out
	// directories of jobs, sockets, pipes and devices. Default: Options.Cwd.
	From string `json:"from,omitempty"`
	// Rev is what a git worktree has checked out. Default: HEAD.
	Rev string `json:"rev,omitempty"`
	// Setup is run by sh -c in a new workspace, before the first attempt. If it fails, the
	// attempt has failed as bad_workspace, and the next one begins in a new workspace. At most
	// Job.Setups run at the same time. Default: none.
	Setup string `json:"setup,omitempty"`
	// Lockfiles is an error: there was a cache for setups with the same lockfiles, which was
	// removed. Leave it nil, and let Setup use the cache of its package manager.
	Lockfiles []string `json:"lockfiles,omitempty"`
	// Teardown is run in the workspace when the task is over. The result does not wait for it.
	// It has the slot of the last attempt, or another one if that slot is taken since. New
	// tasks wait while teardowns outnumber running tasks. Its failure is a warning. Default:
	// none.
	Teardown string `json:"teardown,omitempty"`
	// Remove removes a copy or worktree when the task is accepted. Default: false; the diff
	// is kept in any case.
	Remove bool `json:"remove,omitempty"`
	// Make fills the empty directory dir instead of Kind. An error fails the attempt as
	// bad_workspace. nil: Kind decides.
	Make func(ctx context.Context, task *Task, dir string) error `json:"-"`
}

// WorkspaceKind is how a [Workspace] is made.
type WorkspaceKind string

// Kinds of workspaces.
const (
	WorkspaceCopy     WorkspaceKind = "copy"     // a copy of the directory
	WorkspaceWorktree WorkspaceKind = "worktree" // a new git worktree, detached at Rev
)

// workspacesDir is the directory in Job.Out for copies and worktrees.
const workspacesDir = "workspaces"

func (w *Workspace) check(out string) []error {
	if w == nil {
		return nil
	}
	var wrong []error
	add := func(field, problem, fix string) {
		wrong = append(wrong, &sdk.ConfigError{Option: "Workspace." + field, Problem: problem, Fix: fix})
	}
	if !slices.Contains([]WorkspaceKind{"", WorkspaceCopy, WorkspaceWorktree}, w.Kind) {
		add("Kind", fmt.Sprintf("is %q, which is no kind", string(w.Kind)), "give copy or worktree, or leave it out")
	}
	if w.owned() && out == "" {
		add("Kind", "has no place for the workspaces: Out is empty", "set Out")
	}
	if w.Make != nil && w.Kind != "" {
		add("Make", "is set together with Kind", "give one of them")
	}
	if w.Lockfiles != nil {
		add("Lockfiles", "was removed: setups have no cache of the job any more", "leave it out, and let Setup use the cache of its package manager")
	}
	if w.Rev != "" && w.Kind != WorkspaceWorktree {
		add("Rev", "has an effect only on a worktree", "set Kind to worktree")
	}
	return wrong
}

// owned reports whether the job makes the directory.
func (w *Workspace) owned() bool { return w.Kind != "" || w.Make != nil }

// space is the workspace of an attempt.
type space struct {
	Dir  string `json:"dir"`
	Base string `json:"base,omitempty"` // commit at the start, in a worktree or a copy of a repository
	// Sub is where the task works in Dir, with slashes: a worktree is of a whole repository.
	Sub string `json:"sub,omitempty"`
	Git string `json:"git,omitempty"` // the host's git directory for it, in Job.Out
	// Source is the repository of a directory that is used as it is, from before the agent ran.
	// The zero value: it was in none.
	Source *hostgit.Repo `json:"source,omitempty"`
	// State is that of stateOf before the first attempt there, for Task.ExpectChange.
	State string `json:"state,omitempty"`
}

// work is where the task works.
func (s space) work() string { return filepath.Join(s.Dir, filepath.FromSlash(s.Sub)) }

// badWorkspace is the error of a workspace that cannot be made or used.
type badWorkspace struct {
	dir string
	err error
	// passing: a setup may fail because of a network.
	passing bool
}

func (e *badWorkspace) Error() string { return fmt.Sprintf("workspace %s: %v", e.dir, e.err) }
func (e *badWorkspace) Unwrap() error { return e.err }

// workspaceOf is that of the task, or of the job.
func (j *Job) workspaceOf(t *Task) Workspace {
	var w Workspace
	switch {
	case t.Workspace != nil:
		w = *t.Workspace
	case j.Workspace != nil:
		w = *j.Workspace
	}
	return w
}

// workspaces are where tasks work, and the commands that run there.
type workspaces struct {
	*env
	records *records

	// mu guards what follows, which knows no task.
	mu    sync.Mutex
	turns turns
	repos repositories
}

// makeSpace makes the workspace of a start. A half-made workspace of an earlier host
// under the same name is removed first: nothing was ever started in it.
func (ws *workspaces) makeSpace(ctx context.Context, a *attempt) (space, error) {
	w := &a.workspace
	from := cmp.Or(w.From, a.opts.Cwd)
	from, err := filepath.Abs(from)
	if err != nil {
		return space{}, &badWorkspace{dir: w.From, err: err}
	}
	if !w.owned() {
		if st, err := os.Stat(from); err != nil || !st.IsDir() {
			return space{}, &badWorkspace{dir: from, err: cmpErr(err, errors.New("it is not a directory"))}
		}
		s := space{Dir: from}
		if err := ws.setup(ctx, a, from); err != nil {
			return s, err
		}
		if ws.job.OnAccept != "" || a.task.ExpectChange {
			if s.Source, err = ws.rememberSource(ctx, from); err != nil {
				return s, &badWorkspace{dir: from, err: err}
			}
		}
		return s, nil
	}
	dir := filepath.Join(ws.root, workspacesDir, a.task.ID, fmt.Sprint(a.number))
	s := space{Dir: dir}
	fail := func(err error) (space, error) { return s, &badWorkspace{dir: dir, err: err} }
	if _, err := os.Lstat(dir); err == nil {
		if err := ws.removeSpace(ctx, w, from, dir); err != nil {
			return fail(fmt.Errorf("a part of an earlier one is in the way: %w", err))
		}
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return fail(err)
	}
	switch {
	case w.Make != nil:
		if err = os.Mkdir(dir, 0o700); err == nil {
			err = guard("Workspace.Make", func() error { return w.Make(ctx, a.task, dir) })
		}
	case w.Kind == WorkspaceCopy:
		err = ws.copyTree(from, dir)
	default:
		s, err = ws.addWorktree(ctx, a, from, dir)
	}
	if err != nil {
		return fail(errors.Join(err, ws.removeSpace(context.WithoutCancel(ctx), w, from, dir)))
	}
	if err := ws.setup(ctx, a, s.work()); err != nil || w.Kind == WorkspaceWorktree {
		return s, err
	}
	if err := ws.learn(ctx, &s); err != nil {
		return fail(err)
	}
	return s, nil
}

// useSpace checks before each start that a workspace is what it was made to be. In a worktree
// that is half deleted, perhaps by its Setup, git falls through to the repository around it.
func (ws *workspaces) useSpace(ctx context.Context, a *attempt, s space) error {
	look := os.Stat
	if a.workspace.owned() {
		look = os.Lstat // an agent may have put a link in its place
	}
	st, err := look(s.Dir)
	if err == nil && !st.IsDir() {
		err = errors.New("it is not a directory")
	}
	if err == nil && a.workspace.Kind == WorkspaceWorktree {
		_, _, err = ws.openGit(ctx, a, s)
	}
	if err == nil && s.Sub != "" {
		if st, err = os.Stat(s.work()); err == nil && (!st.IsDir() || !within(s.work(), s.Dir)) {
			err = fmt.Errorf("%s is not a directory in it any more", s.Sub)
		}
	}
	if err != nil {
		return &badWorkspace{dir: s.Dir, err: err}
	}
	return nil
}

func (ws *workspaces) removeSpace(ctx context.Context, w *Workspace, from, dir string) error {
	return errors.Join(ws.removeGit(ctx, w, from, dir), os.RemoveAll(dir))
}

// discard removes the workspace that a start has made in which no agent has run. Without it each start on a
// machine that is short of something, such as space on the disk, would leave one more.
func (ws *workspaces) discard(ctx context.Context, a *attempt, s space) error {
	if s.Dir == "" || !a.workspace.owned() {
		return nil
	}
	return ws.removeSpace(context.WithoutCancel(ctx), &a.workspace, ws.fromOf(a), s.Dir)
}

// clears reports whether there is something to do when a task is over.
func (w *Workspace) clears() bool { return w.Teardown != "" || w.Remove && w.owned() }

// clearUp ends the use of a workspace by a task that is over. Its result does not wait for
// that; the slot does. It continues when the job is canceled, and ends with Kill.
func (ws *workspaces) clearUp(e clearUp, failed error) {
	if failed != nil || e.left == nil || e.left.dir == "" {
		ws.post(cleared{e.slot})
		return
	}
	a := ws.attemptOf(e.left, e.slot)
	ws.exec.Go(func() {
		defer ws.post(cleared{e.slot})
		settled := !e.accepted || ws.afterAcceptance(ws.hard, e.id, e.requeued, a)
		if err := ws.leaveSpace(ws.hard, a, e.left.dir, e.accepted && settled); err != nil {
			ws.say(Event{Kind: EventWarning, Task: e.id, Detail: err.Error()})
		}
	})
}

// leaveSpace runs the teardown, and removes what is to be removed.
func (ws *workspaces) leaveSpace(ctx context.Context, a *attempt, dir string, accepted bool) error {
	var failed error
	if a.workspace.Teardown != "" {
		failed = ws.runTeardown(ctx, a, space{Dir: dir, Sub: a.space.Sub}.work())
	}
	if accepted && a.workspace.Remove && a.workspace.owned() {
		from := cmp.Or(a.workspace.From, a.opts.Cwd)
		failed = errors.Join(failed, ws.removeSpace(ctx, &a.workspace, from, dir))
	}
	return failed
}

func cmpErr(err, or error) error {
	if err != nil {
		return err
	}
	return or
}
