package embedded

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/agent-troupe/troupe/session"
)

// treesDir is where working trees of sub-agents are, in the top directory of a repository.
const treesDir = ".claude/worktrees"

const noRepository = "Cannot create agent worktree: not in a git repository. Leave isolation out."

const noCommit = `Failed to resolve base branch "HEAD": git rev-parse returned no commit for HEAD (for example in a new repository, or on a branch without a commit yet), so there is nothing to base a worktree on.`

// tree is a working tree of git that a sub-agent has for itself, as of Claude Code 2.1.329 (observed).
type tree struct {
	top    string // of the repository
	path   string
	branch string
	head   string // the commit that it began with
	kept   bool   // it has changes, and stays
}

// plant makes a working tree of what is checked out. problem says why it could not be made.
func (h *hands) plant(ctx context.Context, id string) (made *tree, problem string, err error) {
	top, ok, err := h.git(ctx, h.root, "rev-parse", "--show-toplevel")
	switch {
	case err != nil:
		return nil, "", err
	case !ok:
		return nil, noRepository, nil
	}
	w := &tree{top: top, path: filepath.Join(top, treesDir, "agent-"+id), branch: "worktree-agent-" + id}
	if w.head, ok, err = h.git(ctx, top, "rev-parse", "--verify", "--quiet", "HEAD"); err == nil && !ok {
		return nil, noCommit, nil
	}
	said := ""
	if err == nil {
		said, ok, err = h.git(ctx, top, "worktree", "add", "--quiet", "-b", w.branch, w.path, "HEAD")
	}
	if err == nil && !ok {
		return nil, "Failed to create worktree: " + said, nil
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
	state, ok, err := h.git(ctx, w.path, "status", "--porcelain")
	if err != nil || !ok || state != "" {
		return err
	}
	if head, ok, err := h.git(ctx, w.path, "rev-parse", "HEAD"); err != nil || !ok || head != w.head {
		return err
	}
	said, ok, err := h.git(ctx, w.top, "worktree", "remove", w.path)
	if err != nil || !ok {
		return fmt.Errorf("remove the working tree: %s: %w", said, err)
	}
	w.kept = false
	_, _, err = h.git(ctx, w.top, "branch", "--quiet", "-D", w.branch)
	return err
}

// git runs git. The repository's hooks do not run, and a directory that is only laid out as a repository does not count.
func (h *hands) git(ctx context.Context, dir string, args ...string) (out string, ok bool, err error) {
	return h.program(ctx, dir, append([]string{"git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "safe.bareRepository=explicit"}, args...)...)
}

// program runs a program of PATH, and returns what it prints to both of its streams. ok: it has ended with 0.
func (h *hands) program(ctx context.Context, dir string, argv ...string) (out string, ok bool, err error) {
	ctx, cancel := h.limited(ctx)
	defer cancel()
	c, err := h.start(ctx, session.Command{
		Path: "/bin/bash", Args: append([]string{"-c", `exec "$@" 2>&1`, "/bin/bash"}, argv...), Dir: dir, Env: h.env,
	})
	if err != nil {
		return "", false, err
	}
	waited := c.wait(ctx)
	status, err := c.end()
	if waited != nil {
		err = waited
	}
	return strings.TrimSpace(string(c.out.bytes())), err == nil && status.Code == 0 && status.Signal == "", err
}
