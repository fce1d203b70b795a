package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// enter waits until no other job of the runtime changes the repository that dir is in: two
// git commands that add worktrees fail on each other's locks. leave gives it back.
func (r *run) enter(ctx context.Context, dir string) (leave func(), err error) {
	common, err := r.commonDir(ctx, dir)
	if err != nil {
		return nil, err
	}
	return r.rt.Exclusive(ctx, "git "+common)
}

// commonDir returns the directory that all worktrees of a repository share. A repository has
// many paths: its directories, its worktrees, and symbolic links to them.
func (r *run) commonDir(ctx context.Context, dir string) (string, error) {
	out, err := r.git(ctx, dir, "rev-parse", "--git-common-dir")
	if err != nil {
		return "", err
	}
	common := strings.TrimSuffix(out, "\n")
	if !filepath.IsAbs(common) {
		common = filepath.Join(dir, common)
	}
	return filepath.EvalSymlinks(common)
}

const (
	worktreeTries = 5
	worktreePause = 200 * time.Millisecond
)

// addWorktree makes a worktree and returns the commit that it has checked out. It is
// detached: a branch would be left behind, and can be checked out only once.
func (r *run) addWorktree(ctx context.Context, repo, dir, rev string) (base string, err error) {
	leave, err := r.enter(ctx, repo)
	if err != nil {
		return "", err
	}
	defer leave()
	if rev == "" {
		rev = "HEAD"
	}
	for try := 1; ; try++ {
		_, err = r.git(ctx, repo, "worktree", "add", "--detach", "--quiet", dir, rev)
		if err == nil {
			break
		}
		if !strings.Contains(err.Error(), "lock") || try == worktreeTries { // of another program
			return "", err
		}
		if err := r.pause(ctx, worktreePause); err != nil {
			return "", err
		}
	}
	base, err = r.git(ctx, dir, "rev-parse", "HEAD")
	return strings.TrimSpace(base), err
}

func (r *run) removeWorktree(ctx context.Context, repo, dir string) error {
	leave, err := r.enter(ctx, repo)
	if errors.As(err, new(*commandFailed)) { // there is no repository that could list it
		return os.RemoveAll(dir)
	}
	if err != nil {
		return err
	}
	defer leave()
	_, _ = r.git(ctx, repo, "worktree", "remove", "--force", "--force", dir) // fails for one that is half made
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	_, err = r.git(ctx, repo, "worktree", "prune")
	return err
}

// checkWorktree fails unless dir itself is a worktree that its repository knows.
func (r *run) checkWorktree(ctx context.Context, dir string) error {
	st, err := os.Lstat(filepath.Join(dir, ".git"))
	if err != nil {
		return fmt.Errorf("it is no worktree any more: %w", err)
	}
	if !st.Mode().IsRegular() {
		return errors.New("it is no worktree any more: .git is not a file")
	}
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	top, err := r.git(ctx, dir, "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	if strings.TrimSpace(top) != resolved {
		return fmt.Errorf("it is no worktree any more: git takes it for a part of %s", strings.TrimSpace(top))
	}
	// What git worktree list goes by. The command itself reads all worktrees, and fails while
	// another one is added.
	own, err := r.git(ctx, dir, "rev-parse", "--absolute-git-dir")
	if err != nil {
		return err
	}
	own = strings.TrimSuffix(own, "\n")
	listed, err := os.ReadFile(filepath.Join(own, "gitdir"))
	if err != nil {
		return fmt.Errorf("its repository does not list it any more: %w", err)
	}
	pointer := strings.TrimSpace(string(listed))
	if !filepath.IsAbs(pointer) { // since git 2.48
		pointer = filepath.Join(own, pointer)
	}
	if !sameFile(pointer, filepath.Join(dir, ".git")) {
		return fmt.Errorf("its repository has another worktree in its place: %s", filepath.Dir(pointer))
	}
	return nil
}

// isRepo reports whether dir is the top of a git repository. A directory in one is not: git
// would change what is around it.
func (r *run) isRepo(ctx context.Context, dir string) bool {
	top, err := r.git(ctx, dir, "rev-parse", "--show-toplevel")
	return err == nil && sameFile(dir, strings.TrimSuffix(top, "\n"))
}

// diff returns what changed in a workspace of the task's own since base.
func (r *run) diff(ctx context.Context, s space) (string, error) {
	base := s.Base
	if base == "" {
		base = "HEAD"
	}
	if _, err := r.git(ctx, s.Dir, "add", "--all", "--intent-to-add", "."); err != nil {
		return "", err
	}
	return r.git(ctx, s.Dir, "diff", "--no-color", "--no-ext-diff", base)
}

func (r *run) git(ctx context.Context, dir string, args ...string) (string, error) {
	// The garbage collection of one worktree would take the locks of all.
	argv := append([]string{"-c", "gc.auto=0", "-c", "core.quotePath=false"}, args...)
	out, err := r.command(ctx, command{name: "git", args: argv, dir: dir, limit: gitLimit, most: maxDiff})
	if err != nil {
		return "", fmt.Errorf("git %s: %w%s", args[0], err, quoted(out.errors))
	}
	return string(out.output), nil
}

const (
	gitLimit = 5 * time.Minute
	maxDiff  = 16 << 20
)
