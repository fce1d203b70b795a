package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/agent-troupe/troupe/internal/hostgit"
	"github.com/agent-troupe/troupe/session"
)

// treesDir is where working trees of sub-agents are, in the top directory of a repository.
const treesDir = ".claude/worktrees"

const noRepository = "Cannot create agent worktree: not in a git repository. Leave isolation out."

const noCommit = `Failed to resolve base branch "HEAD": git rev-parse returned no commit for HEAD (for example in a new repository, or on a branch without a commit yet), so there is nothing to base a worktree on.`

// farTree: package hostgit reads the files of a repository here.
const farTree = "Cannot create agent worktree: commands run elsewhere, with their files. Leave isolation out."

// tree is a working tree of git that a sub-agent has for itself, as of Claude Code 2.1.329 (observed).
type tree struct {
	top    string // of the repository
	path   string
	branch string
	head   string // the commit that it began with
	kept   bool   // it has changes, and stays
	git    *hostgit.Dir
}

// plant makes a working tree of what is checked out. problem says why it could not be made. No gate is
// asked, so nothing in the repository may decide what runs: git has a directory of the host's.
func (h *hands) plant(ctx context.Context, id string) (made *tree, problem string, err error) {
	own, err := h.shellsFile("git-" + id)
	if err != nil || own == "" || h.far() {
		return nil, farTree, err
	}
	g := &hostgit.Git{Environ: h.env, Run: h.git}
	r, err := g.Find(ctx, h.root)
	if errors.Is(err, hostgit.ErrNoRepository) || err == nil && r.Top == "" {
		return nil, noRepository, nil
	}
	if err != nil {
		return nil, "", err
	}
	head, err := r.Head()
	if err == nil && head.Hash == "" {
		return nil, noCommit, nil
	}
	if err != nil {
		return nil, "", err
	}
	w := &tree{top: r.Top, path: filepath.Join(r.Top, treesDir, "agent-"+id), branch: "worktree-agent-" + id, head: head.Hash}
	top, err := os.OpenRoot(r.Top) // no link leads out of it
	if err != nil {
		return nil, "", err
	}
	err = errors.Join(top.MkdirAll(treesDir, 0o777), top.Close())
	if err == nil {
		g.Excludes = g.UserExcludes(ctx)
		w.git, err = g.Make(own, w.path, r)
	}
	if err == nil {
		err = w.git.AddWorktree(ctx, w.head, "agent-"+id, w.branch)
	}
	return w, "", err
}

// refuses is what the model reads of a call that writes a file of the repository beside the tree;
// "": it may.
func (w *tree) refuses(own *tool, path string) string {
	if w == nil || own.path == "" || own.reads || within(path, w.path) || !within(path, w.top) {
		return ""
	}
	return "This agent is isolated in the worktree " + w.path + ". Edit the worktree copy of this file instead of the shared-checkout path."
}

// clear removes the tree if nothing has changed in it.
func (h *hands) clear(ctx context.Context, w *tree) error {
	w.kept = true
	r := w.git.Repo()
	now, err := r.Worktree(w.path)
	if err != nil {
		return err
	}
	if head, err := now.Head(); err != nil || head.Hash != w.head || head.Ref != "refs/heads/"+w.branch {
		return err
	}
	if changed, err := w.git.Changed(ctx, w.head, w.path); err != nil || len(changed) > 0 {
		return err
	}
	top, err := os.OpenRoot(w.top)
	if err != nil {
		return err
	}
	rel, err := filepath.Rel(w.top, w.path)
	if err == nil {
		err = top.RemoveAll(rel)
	}
	if err := errors.Join(err, top.Close()); err != nil {
		return fmt.Errorf("remove the working tree: %w", err)
	}
	w.kept = false
	return errors.Join(r.Forget(w.path), r.DropBranch(w.branch, w.head), os.RemoveAll(w.git.Path()))
}

// git runs git for package hostgit, confined as commands are.
func (h *hands) git(ctx context.Context, c hostgit.Call) (string, error) {
	dir := c.Dir
	if dir == "" {
		dir = h.root
	}
	out, ok, err := h.printed(ctx, session.Command{
		Path: "/bin/bash", Args: append([]string{"-c", `exec "$@"`, "/bin/bash", "git"}, c.Args...), Dir: dir, Env: c.Env,
	})
	if err == nil && !ok {
		err = fmt.Errorf("git %s has failed", c.Args[0])
	}
	return string(out), err
}

// printed runs a program, and returns what it prints. ok: it has ended with 0.
func (h *hands) printed(ctx context.Context, how session.Command) (out []byte, ok bool, err error) {
	ctx, cancel := h.limited(ctx)
	defer cancel()
	c, err := h.start(ctx, how)
	if err != nil {
		return nil, false, err
	}
	waited := c.wait(ctx)
	status, err := c.end()
	if waited != nil {
		err = waited
	}
	out = c.out.bytes()
	if err == nil && int64(len(out)) < c.out.length() {
		err = errors.New("it printed more than can be read")
	}
	return out, err == nil && status.Code == 0 && status.Signal == "", err
}
