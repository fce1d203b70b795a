package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/agent-troupe/troupe/internal/hostgit"
	"github.com/agent-troupe/troupe/internal/parcel"
)

// movedSpace says what a parcel has of a workspace.
type movedSpace struct {
	// Kind is "git": the commits since Base, and the files that differ from Head; "files": all files;
	// or "": nothing, since the directory is not the task's alone.
	Kind string       `json:"kind,omitempty"`
	Base string       `json:"base,omitempty"`
	Head hostgit.Head `json:"head,omitzero"`
}

const (
	movedGit   = "git"
	movedFiles = "files"
)

// movedTree is a workspace that is packed, or filled.
type movedTree struct {
	movedSpace
	dir   string
	alone bool         // its repository has no other working tree
	git   *hostgit.Dir // of movedGit
	now   *hostgit.Repo
	root  *os.Root // while it is filled
}

// openMoved finds out how a workspace is moved.
func (ws *workspaces) openMoved(ctx context.Context, a *attempt, s space) (*movedTree, error) {
	t := &movedTree{dir: s.Dir}
	if !a.workspace.owned() {
		return t, nil
	}
	if err := ws.useSpace(ctx, a, s); err != nil { // the agent has worked there since
		return nil, err
	}
	t.Kind = movedFiles
	if s.Git == "" || s.Base == "" || a.workspace.Make != nil {
		return t, nil
	}
	d, now, err := ws.openGit(ctx, a, s)
	if err != nil {
		return nil, err
	}
	t.alone = a.workspace.Kind != WorkspaceWorktree
	if t.alone && !hostgit.SameFile(now.GitDir, filepath.Join(s.Dir, ".git")) { // a copy of a worktree, whose repository is elsewhere
		return t, nil
	}
	t.Kind, t.Base, t.git, t.now = movedGit, s.Base, d, now
	return t, nil
}

// open opens the directory. A link in its place, which an agent has put there since, is an error.
func (t *movedTree) open() (*os.Root, error) {
	root, err := os.OpenRoot(t.dir)
	if err != nil {
		return nil, err
	}
	named, err := os.Lstat(t.dir)
	if err == nil {
		var opened os.FileInfo
		if opened, err = root.Stat("."); err == nil && !os.SameFile(named, opened) {
			err = fmt.Errorf("%s is a link, or was replaced", t.dir)
		}
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// bundle writes the commits into a file.
func (t *movedTree) bundle(ctx context.Context, file string) (err error) {
	if t.git != nil {
		t.Head, err = t.git.Bundle(ctx, t.now, t.Base, file)
	}
	return err
}

// pack adds the commits and the files to a parcel. gone are files of the commit that are not there.
func (t *movedTree) pack(ctx context.Context, p *parcel.Packer, commits string) (gone []string, err error) {
	if t.Kind == "" {
		return nil, nil
	}
	root, err := t.open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if t.git == nil {
		return nil, p.Tree(moveFiles, root)
	}
	f, err := os.Open(commits)
	switch {
	case err == nil:
		if err := errors.Join(p.From(moveCommits, f), f.Close()); err != nil {
			return nil, err
		}
	case !errors.Is(err, os.ErrNotExist):
		return nil, err
	}
	names, err := t.git.Changed(ctx, t.Head.Hash, t.dir)
	if err != nil {
		return nil, err
	}
	return p.Files(moveFiles, root, names)
}

// accepts reports why a new workspace cannot be filled with what another one had.
func (t *movedTree) accepts(from *movedSpace) error {
	if t.Kind != from.Kind || t.Base != from.Base {
		return fmt.Errorf("the workspace there began with another state of its source (%s %.12s) than the one here (%s %.12s)", from.Kind, from.Base, t.Kind, t.Base)
	}
	return nil
}

// begin brings a new workspace to the commit of the other one; the files that differ from it follow.
func (t *movedTree) begin(ctx context.Context, from *movedSpace, commits string) (err error) {
	if t.Kind == "" {
		return nil
	}
	if t.git != nil {
		if err := t.git.Move(ctx, t.now, from.Head, commits, t.alone); err != nil {
			return err
		}
	}
	if t.root, err = t.open(); err != nil {
		return err
	}
	if t.git == nil {
		return parcel.Clear(t.root)
	}
	made, err := t.git.Changed(ctx, from.Head.Hash, t.dir) // by Setup
	if err != nil {
		return err
	}
	for _, name := range made {
		if name[len(name)-1] == '/' { // a repository
			continue
		}
		if err := parcel.Remove(t.root, name); err != nil {
			return err
		}
	}
	return nil
}

func (t *movedTree) take(in *parcel.Reader, name string) error {
	if t.root == nil {
		return &parcel.HostileError{Name: name, Why: "and the workspace is shared"}
	}
	return in.Write(t.root, name)
}

// end removes what was not there.
func (t *movedTree) end(gone []string) error {
	if t.root == nil {
		return nil
	}
	for _, name := range gone {
		if err := parcel.Remove(t.root, name); err != nil {
			return err
		}
	}
	return nil
}

// close ends the filling.
func (t *movedTree) close() error {
	if t.root == nil {
		return nil
	}
	return t.root.Close()
}
