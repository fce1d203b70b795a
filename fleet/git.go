package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/internal/hostgit"
	"github.com/agent-troupe/troupe/internal/kernel"
)

// gitDir is the directory in Job.Out for the git directories of the host. No agent of a
// copy or a worktree can write there.
const gitDir = "git"

const (
	gitLimit = 5 * time.Minute
	maxDiff  = 16 << 20
)

// repositories is what the job knows of git.
type repositories struct {
	git   *hostgit.Git
	found map[string]*hostgit.Repo // sources, as they were when they were used first
}

// hostGit is the git of this job: every git that the host runs goes through it.
func (ws *workspaces) hostGit(ctx context.Context) *hostgit.Git {
	ws.mu.Lock()
	g := ws.repos.git
	ws.mu.Unlock()
	if g != nil {
		return g
	}
	g = &hostgit.Git{Environ: os.Environ(), Run: func(ctx context.Context, c hostgit.Call) (string, error) {
		out, err := ws.command(ctx, command{name: "git", args: c.Args, dir: c.Dir, whole: c.Env, limit: gitLimit, most: maxDiff})
		if err != nil {
			return "", fmt.Errorf("git %s: %w%s", c.Args[0], err, quoted(out.errors))
		}
		return string(out.output), nil
	}}
	g.Excludes = g.UserExcludes(ctx)
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.repos.git = g
	return g
}

// gitRoot returns the directory for the host's git directories, and what removes it when
// it is no longer needed. It is in Out, unless what works in dir could write there.
func (ws *workspaces) gitRoot(dir string) (root string, remove func()) {
	if ws.root != "" && !within(ws.root, dir) {
		return filepath.Join(ws.root, gitDir), func() {}
	}
	root = filepath.Join(os.TempDir(), "troupe-git-"+kernel.NewID(ws.rt.Rand()))
	return root, func() { _ = os.RemoveAll(root) }
}

// within reports whether a path is dir or below it.
func within(name, dir string) bool {
	rel, err := filepath.Rel(resolved(dir), resolved(name))
	return err == nil && filepath.IsLocal(rel)
}

// resolved is a path without links, as far as it exists.
func resolved(name string) string {
	if to, err := filepath.EvalSymlinks(name); err == nil {
		return to
	}
	if up := filepath.Dir(name); up != name {
		return filepath.Join(resolved(up), filepath.Base(name))
	}
	return name
}

// withSource calls do with a git directory for the repository that from is in, as it was when
// the job used it first. One call at a time uses it. fresh: it was made now.
func (ws *workspaces) withSource(ctx context.Context, from string, do func(d *hostgit.Dir, fresh bool) error) error {
	from = resolved(from)
	sum := sha256.Sum256([]byte(from))
	root, remove := ws.gitRoot(from)
	defer remove()
	own := filepath.Join(root, "source-"+hex.EncodeToString(sum[:8]))
	leave, err := ws.rt.Exclusive(ctx, "git "+own)
	if err != nil {
		return err
	}
	defer leave()
	g := ws.hostGit(ctx)
	ws.mu.Lock()
	repo := ws.repos.found[from]
	ws.mu.Unlock()
	var d *hostgit.Dir
	switch {
	case repo != nil && repo.Common == "":
		return fmt.Errorf("%s: %w", from, hostgit.ErrNoRepository)
	case repo != nil:
		d, err = g.Make(own, repo.Top, repo)
	default:
		if d, err = g.Open(own, ""); err == nil { // an earlier process has used it
			break
		}
		if repo, err = g.Find(ctx, from); err == nil {
			d, err = g.Make(own, repo.Top, repo)
		}
		if err == nil {
			err = d.Seed(ctx)
		}
	}
	if err != nil {
		return err
	}
	return do(d, ws.recall(from, d.Repo()))
}

// recall notes what the repository of a directory was, unless that is known already.
func (ws *workspaces) recall(from string, repo *hostgit.Repo) (news bool) {
	from = resolved(from)
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.repos.found == nil {
		ws.repos.found = map[string]*hostgit.Repo{}
	}
	if ws.repos.found[from] != nil {
		return false
	}
	ws.repos.found[from] = repo
	return true
}

// rememberSource returns the repository of a directory that an agent is about to work in; the
// zero value if it is in none.
func (ws *workspaces) rememberSource(ctx context.Context, from string) (*hostgit.Repo, error) {
	repo := &hostgit.Repo{}
	err := ws.withSource(ctx, from, func(d *hostgit.Dir, _ bool) error { repo = d.Repo(); return nil })
	if errors.Is(err, hostgit.ErrNoRepository) || errors.Is(err, hostgit.ErrReftable) {
		ws.recall(from, repo)
		err = nil
	}
	return repo, err
}

// gitName is the name in Out of the git directory for a workspace of the job's own.
func (ws *workspaces) gitName(dir string) string {
	rel, err := filepath.Rel(filepath.Join(ws.root, workspacesDir), dir)
	if err != nil || !filepath.IsLocal(rel) {
		return ""
	}
	return path.Join(gitDir, filepath.ToSlash(rel))
}

// addWorktree makes the worktree of an attempt, and says what its task may miss there.
func (ws *workspaces) addWorktree(ctx context.Context, a *attempt, from, dir string) (s space, err error) {
	s = space{Dir: dir, Git: ws.gitName(dir)}
	var repo *hostgit.Repo
	err = ws.withSource(ctx, from, func(d *hostgit.Dir, fresh bool) error {
		repo = d.Repo()
		if s.Base, s.Sub, err = checkedOut(ctx, d, from, a.workspace.Rev); err != nil {
			return err
		}
		if fresh && repo.Top != "" {
			ws.uncommitted(ctx, d, s.Base)
		}
		return nil
	})
	if err != nil {
		return s, err
	}
	d, err := ws.hostGit(ctx).Make(filepath.Join(ws.root, filepath.FromSlash(s.Git)), dir, repo)
	if err != nil {
		return s, err
	}
	return s, d.AddWorktree(ctx, s.Base, a.task.ID+"-"+fmt.Sprint(a.number), "")
}

// checkedOut returns the commit of a revision, and the directory in it that stands for from.
func checkedOut(ctx context.Context, d *hostgit.Dir, from, rev string) (commit, sub string, err error) {
	if commit, err = d.Commit(ctx, rev); err != nil {
		return "", "", err
	}
	if top := d.Repo().Top; top != "" {
		if sub, err = filepath.Rel(resolved(top), resolved(from)); err != nil {
			return "", "", err
		}
	}
	if sub = filepath.ToSlash(sub); sub == "." || sub == "" {
		return commit, "", nil
	}
	there, err := d.Has(ctx, commit, sub)
	if err == nil && !there {
		err = fmt.Errorf("the commit %.12s has no directory %s: commit it, or give another directory or revision", commit, sub)
	}
	return commit, sub, err
}

// uncommitted warns about files of the source that no worktree has.
func (ws *workspaces) uncommitted(ctx context.Context, d *hostgit.Dir, commit string) {
	head, err := d.Repo().Head()
	if err != nil || head.Hash != commit { // a worktree of another revision has other files anyway
		return
	}
	top := d.Repo().Top
	names, err := d.Changed(ctx, commit, top)
	if err != nil {
		ws.post(remarked{"cannot tell whether files are not committed: " + err.Error()})
		return
	}
	jobs := map[string]bool{} // directories, and whether they are in one of a job
	var inJob func(dir string) bool
	inJob = func(dir string) bool {
		is, known := jobs[dir]
		if !known && len(dir) > len(top) {
			is = ofJob(dir) || inJob(filepath.Dir(dir))
			jobs[dir] = is
		}
		return is
	}
	left := slices.DeleteFunc(names, func(name string) bool { return inJob(filepath.Dir(filepath.Join(top, filepath.FromSlash(name)))) })
	if len(left) == 0 {
		return
	}
	const most = 3
	text, verb := strings.Join(left[:min(len(left), most)], ", "), "is"
	if len(left) > 1 {
		verb = "are"
	}
	if more := len(left) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	ws.post(remarked{fmt.Sprintf("%s %s not committed in %s, and not in the worktrees", text, verb, top)})
}

// learn makes a git directory for a workspace that is itself a repository, such as a
// copy of one. No agent has run there.
func (ws *workspaces) learn(ctx context.Context, s *space) error {
	g := ws.hostGit(ctx)
	repo, err := g.Find(ctx, s.Dir)
	if errors.Is(err, hostgit.ErrNoRepository) || errors.Is(err, hostgit.ErrReftable) || err == nil && !hostgit.SameFile(repo.Top, s.Dir) { // Out may be in a repository
		return nil
	}
	if err != nil {
		return err
	}
	head, err := repo.Head()
	if err != nil {
		return err
	}
	s.Git, s.Base = ws.gitName(s.Dir), head.Hash
	d, err := g.Make(filepath.Join(ws.root, filepath.FromSlash(s.Git)), s.Dir, repo)
	if err != nil || s.Base == "" {
		return err
	}
	return d.Learn(ctx, s.Base)
}

// openGit opens the git directory for a workspace of the job's own, and finds the repository
// that is in the workspace now. It fails if that is not what was made.
func (ws *workspaces) openGit(ctx context.Context, a *attempt, s space) (*hostgit.Dir, *hostgit.Repo, error) {
	name := s.Git
	if name == "" {
		name = ws.gitName(s.Dir)
	}
	g, own := ws.hostGit(ctx), filepath.Join(ws.root, filepath.FromSlash(name))
	d, err := g.Open(own, s.Dir)
	if errors.Is(err, os.ErrNotExist) && a.workspace.Kind == WorkspaceWorktree { // of an earlier release
		var repo *hostgit.Repo
		if repo, err = g.Find(ctx, ws.fromOf(a)); err == nil {
			d, err = g.Make(own, s.Dir, repo)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if a.workspace.Kind == WorkspaceWorktree {
		now, err := d.Repo().Worktree(s.Dir)
		return d, now, err
	}
	if st, err := os.Lstat(d.Repo().GitDir); err != nil || !st.IsDir() && filepath.Dir(d.Repo().GitDir) == s.Dir {
		return nil, nil, cmpErr(err, errors.New(".git is not a directory any more"))
	}
	return d, d.Repo(), nil
}

func (ws *workspaces) fromOf(a *attempt) string {
	if a.workspace.From != "" {
		return a.workspace.From
	}
	return a.opts.Cwd
}

// removeGit removes what the host has of a workspace besides the directory itself.
func (ws *workspaces) removeGit(ctx context.Context, w *Workspace, from, dir string) error {
	name := ws.gitName(dir)
	if name == "" {
		return nil
	}
	own := filepath.Join(ws.root, filepath.FromSlash(name))
	if w.Kind == WorkspaceWorktree {
		g := ws.hostGit(ctx)
		var repo *hostgit.Repo
		if d, err := g.Open(own, dir); err == nil {
			repo = d.Repo()
		} else if repo, err = hostgit.Find(from); err != nil {
			return nil //nolint:nilerr // there is no repository that could list it
		}
		if err := repo.Forget(dir); err != nil {
			return err
		}
	}
	return os.RemoveAll(own)
}

// diff returns what changed in a workspace of the task's own since its base.
func (ws *workspaces) diff(ctx context.Context, a *attempt, s space) (string, error) {
	if err := ws.useSpace(ctx, a, s); err != nil { // the agent has worked there since
		return "", err
	}
	d, _, err := ws.openGit(ctx, a, s)
	if err != nil {
		return "", err
	}
	return d.Diff(ctx, s.Base)
}
