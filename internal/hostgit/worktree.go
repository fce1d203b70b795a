package hostgit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// AddWorktree makes the worktree dir of the repository of d, on a new branch at a commit, or
// detached with "", and fills it. name is how the repository lists it; a number is added to one
// that is taken. It writes what git worktree add does, but runs no hook. An entry of the
// repository for the same path, of a worktree that was removed, is deleted first. A branch that
// is there already is an error.
func (d *Dir) AddWorktree(ctx context.Context, commit, name, branch string) error {
	if err := d.repo.Forget(d.top); err != nil {
		return err
	}
	if err := os.Mkdir(d.top, 0o777); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // as git makes it; umask decides
		return err
	}
	root, err := os.OpenRoot(d.repo.Common)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if err := root.Mkdir("worktrees", 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	head := commit
	if branch != "" {
		head = "ref: " + heads + branch
		if err := d.repo.newBranch(root, branch, commit); err != nil {
			return err
		}
	}
	id, err := d.register(root, name)
	if err != nil {
		return err
	}
	pointer := filepath.Join(d.top, ".git")
	for _, f := range [][2]string{
		{"locked", "initializing\n"}, // git worktree prune keeps it
		{"HEAD", head + "\n"}, {"commondir", "../..\n"}, {"gitdir", pointer + "\n"},
	} {
		if err := replaceFile(root, id+"/"+f[0], f[1]); err != nil {
			return err
		}
	}
	top, err := os.OpenRoot(d.top)
	if err != nil {
		return err
	}
	err = replaceFile(top, ".git", "gitdir: "+filepath.Join(d.repo.Common, filepath.FromSlash(id))+"\n")
	if err := errors.Join(err, top.Close()); err != nil {
		return err
	}
	if err := d.Fill(ctx, commit); err != nil {
		return err
	}
	index, err := readSmall(filepath.Join(d.path, "index"))
	if err == nil {
		err = replaceFile(root, id+"/index", index)
	}
	if err == nil && d.repo.Sparse != "" {
		err = errors.Join(root.MkdirAll(id+"/info", 0o777), replaceFile(root, id+"/info/sparse-checkout", d.repo.Sparse))
	}
	if err == nil {
		err = root.Remove(id + "/locked")
	}
	return err
}

const heads = "refs/heads/"

// newBranch makes a branch at a commit, in the repository's directory root.
func (r *Repo) newBranch(root *os.Root, branch, commit string) error {
	if !goodRef(heads + branch) {
		return fmt.Errorf("%q is no name of a branch", branch)
	}
	if at, err := r.ref(heads + branch); err != nil || at != "" {
		return errors.Join(err, fmt.Errorf("there is a branch %s already", branch))
	}
	if err := root.MkdirAll("refs/heads", 0o777); err != nil {
		return err
	}
	f, err := root.OpenFile(heads+branch, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.WriteString(commit + "\n")
	return errors.Join(err, f.Close())
}

// DropBranch removes a branch that AddWorktree has made, if it is still at the commit, and no
// other tool has packed it.
func (r *Repo) DropBranch(branch, commit string) error {
	root, err := os.OpenRoot(r.Common)
	if err != nil {
		return err
	}
	text, err := root.ReadFile(heads + branch)
	if err == nil && strings.TrimSpace(string(text)) == commit {
		err = root.Remove(heads + branch)
	}
	return errors.Join(err, root.Close())
}

// register makes the directory of a worktree in its repository.
func (d *Dir) register(root *os.Root, name string) (string, error) {
	const most = 10_000
	for n := range most {
		id := "worktrees/" + name
		if n > 0 {
			id = fmt.Sprintf("%s-%d", id, n)
		}
		err := root.Mkdir(id, 0o777)
		if !errors.Is(err, fs.ErrExist) {
			return id, err
		}
	}
	return "", fmt.Errorf("%s has too many worktrees named %s", d.repo.Common, name)
}

// worktree returns the directory of the repository for the worktree dir; "": it lists none.
func (r *Repo) worktree(dir string) (string, error) {
	all, err := os.ReadDir(filepath.Join(r.Common, "worktrees"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	for _, e := range all {
		id := filepath.Join(r.Common, "worktrees", e.Name())
		text, err := readSmall(filepath.Join(id, "gitdir"))
		if err != nil {
			continue
		}
		if at := filepath.Dir(joined(id, strings.TrimSpace(text))); at == dir || SameFile(at, dir) {
			return id, nil
		}
	}
	return "", err
}

// Forget takes the worktree dir out of the repository's list. A missing entry is not an
// error.
func (r *Repo) Forget(dir string) error {
	id, err := r.worktree(dir)
	if err != nil || id == "" {
		return err
	}
	root, err := os.OpenRoot(r.Common)
	if err != nil {
		return err
	}
	return errors.Join(root.RemoveAll("worktrees/"+filepath.Base(id)), root.Close())
}

// Worktree returns the repository of the worktree dir, if dir itself is still one that the
// repository lists, and the text of its error says what is wrong otherwise.
func (r *Repo) Worktree(dir string) (*Repo, error) {
	pointer := filepath.Join(dir, ".git")
	st, err := os.Lstat(pointer)
	if err != nil {
		return nil, fmt.Errorf("it is no worktree any more: %w", err)
	}
	if !st.Mode().IsRegular() {
		return nil, errors.New("it is no worktree any more: .git is not a file")
	}
	own, err := pointed(dir)
	if err != nil {
		return nil, fmt.Errorf("it is no worktree any more: %w", err)
	}
	listed, err := r.worktree(dir)
	if err != nil {
		return nil, err
	}
	if listed == "" {
		return nil, errors.New("its repository does not list it any more")
	}
	if !SameFile(own, listed) {
		return nil, fmt.Errorf("it is no worktree any more: .git leads to %s", own)
	}
	return &Repo{Top: dir, GitDir: listed, Common: r.Common, Config: r.Config, Exclude: r.Exclude, Shallow: r.Shallow, Sparse: r.Sparse}, nil
}
