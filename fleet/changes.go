package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/agent-troupe/troupe/internal/hostgit"
)

// stateOf identifies what is in a workspace, for Task.ExpectChange. In a git repository it is
// the commit and the content of all files that differ from it and are not ignored; elsewhere
// the names, sizes and times of all files.
func (ws *workspaces) stateOf(ctx context.Context, a *attempt, s space) (string, error) {
	sum := sha256.New()
	var err error
	switch {
	case s.Git != "":
		var d *hostgit.Dir
		var now *hostgit.Repo
		if d, now, err = ws.openGit(ctx, a, s); err == nil {
			err = addChanges(ctx, sum, d, now, s.work())
		}
	case a.workspace.owned():
		err = addTree(sum, s.Dir)
	default:
		if s.Source != nil {
			ws.recall(s.Dir, s.Source)
		}
		err = ws.withSource(ctx, s.Dir, func(d *hostgit.Dir, _ bool) error { return addChanges(ctx, sum, d, d.Repo(), s.Dir) })
		if errors.Is(err, hostgit.ErrNoRepository) || errors.Is(err, hostgit.ErrReftable) {
			err = addTree(sum, s.Dir)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:16]), err
}

// addChanges adds the commit of a repository, and the files in dir that differ from it. How
// they differ, such as whether they are staged, says nothing about their content.
func addChanges(ctx context.Context, sum hash.Hash, d *hostgit.Dir, now *hostgit.Repo, dir string) error {
	head, err := now.Head()
	if err != nil {
		return err
	}
	names, err := d.Changed(ctx, head.Hash, dir)
	if err != nil {
		return err
	}
	_, _ = io.WriteString(sum, head.Hash)
	for _, name := range names {
		if err := addFile(sum, filepath.Join(now.Top, filepath.FromSlash(name))); err != nil {
			return err
		}
	}
	return nil
}

// addFile adds the name and the content of a file, or of a repository in a repository.
func addFile(sum hash.Hash, name string) error {
	st, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		_, _ = fmt.Fprintf(sum, "%q is gone\n", name)
		return nil
	case err != nil:
		return err
	case st.IsDir():
		return addTree(sum, name)
	}
	_, _ = fmt.Fprintf(sum, "%q %v %d\n", name, st.Mode(), st.Size())
	if !st.Mode().IsRegular() {
		target, _ := os.Readlink(name) // of anything else the mode says enough
		_, _ = io.WriteString(sum, target)
		return nil
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // an agent may put a pipe there meanwhile
	if err != nil {
		return err
	}
	_, err = io.Copy(sum, f)
	return errors.Join(err, f.Close())
}

// addTree adds the names, sizes and times of all files in a directory, which may be a link.
// Directories have no time: a temporary file changes it.
func addTree(sum hash.Hash, dir string) error {
	if target, err := filepath.EvalSymlinks(dir); err == nil {
		dir = target
	}
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_, _ = fmt.Fprintf(sum, "%q\n", name)
			return nil
		}
		var st fs.FileInfo
		if err == nil {
			st, err = d.Info()
		}
		if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
			return nil
		}
		if err == nil {
			_, _ = fmt.Fprintf(sum, "%q %v %d %d\n", name, st.Mode(), st.Size(), st.ModTime().UnixNano())
		}
		return err
	})
}
