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
	"strings"
)

// stateOf identifies what is in a workspace, for Task.ExpectChange. In a git repository it is
// the commit and the content of all files that differ from it and are not ignored; elsewhere
// the names, sizes and times of all files.
func (r *run) stateOf(ctx context.Context, dir string, owned bool) (string, error) {
	sum := sha256.New()
	top, err := r.git(ctx, dir, "rev-parse", "--show-toplevel")
	top = strings.TrimSuffix(top, "\n")
	switch {
	case errors.As(err, new(*commandFailed)), err == nil && owned && !sameFile(dir, top): // Out may be in a repository
		err = addTree(sum, dir)
	case err == nil:
		err = r.addChanges(ctx, sum, dir, top)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16]), err
}

// addChanges adds the commit of a repository, and the files in dir that differ from it. How
// they differ, such as whether they are staged, says nothing about their content.
func (r *run) addChanges(ctx context.Context, sum hash.Hash, dir, top string) error {
	head, err := r.git(ctx, dir, "rev-parse", "--verify", "--quiet", "HEAD")
	if err != nil && !errors.As(err, new(*commandFailed)) { // there is no commit yet
		return err
	}
	status, err := r.git(ctx, dir, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--", ".")
	if err != nil {
		return err
	}
	_, _ = io.WriteString(sum, head)
	for entry := range strings.SplitSeq(status, "\x00") {
		if len(entry) < len("XY a") {
			continue
		}
		name := filepath.Join(top, filepath.FromSlash(entry[len("XY "):]))
		if err := addFile(sum, name); err != nil {
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
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(sum, f)
	return errors.Join(err, f.Close())
}

// addTree adds the names, sizes and times of all files in a directory. Directories have no
// time: a temporary file changes it.
func addTree(sum hash.Hash, dir string) error {
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

// sameFile reports whether two paths lead to the same file.
func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	y, other := os.Stat(b)
	return err == nil && other == nil && os.SameFile(x, y)
}
