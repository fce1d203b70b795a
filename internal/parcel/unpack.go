package parcel

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"
)

// HostileError says that a parcel has an entry that no [Packer] writes.
type HostileError struct{ Name, Why string }

func (e *HostileError) Error() string { return fmt.Sprintf("the parcel has %q, %s", e.Name, e.Why) }

// Reader reads a parcel, entry by entry. Its content between two calls of Next is that of the entry.
type Reader struct {
	tar  *tar.Reader
	head *tar.Header
	in   *io.LimitedReader
	budget
}

// maxHeads is how much an entry may have besides its content: names, and padding.
const maxHeads = 16 << 10

// NewReader reads a parcel of at most limit bytes.
func NewReader(r io.Reader, limit int64) *Reader {
	in := &io.LimitedReader{R: r, N: limit + maxHeads}
	return &Reader{tar: tar.NewReader(in), in: in, budget: budget{limit: limit, left: limit}}
}

// Next returns the name of the next entry; io.EOF after the last one.
func (r *Reader) Next() (name string, err error) {
	r.in.N += maxHeads
	if r.head, err = r.tar.Next(); err != nil {
		if r.in.N <= 0 {
			err = &TooLargeError{Name: "names without a file", Limit: r.limit}
		}
		return "", err
	}
	h := r.head
	if h.Typeflag == tar.TypeDir && len(h.Name) > 1 && h.Name[len(h.Name)-1] == '/' {
		h.Name = h.Name[:len(h.Name)-1]
	}
	switch {
	case !allowed(h.Name):
		return "", &HostileError{h.Name, "which is no name of a file in a workspace"}
	case h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir && h.Typeflag != tar.TypeSymlink:
		return "", &HostileError{h.Name, "which is neither a file nor a directory nor a symbolic link"}
	}
	return h.Name, r.take(h.Name, h.Size)
}

// Read reads the content of the entry.
func (r *Reader) Read(b []byte) (int, error) { return r.tar.Read(b) }

// Write writes the entry into root, under a name of the caller's, in place of what has that name.
func (r *Reader) Write(root *os.Root, name string) error {
	h := r.head
	if !allowed(name) {
		return &HostileError{name, "which is no name of a file in a workspace"}
	}
	if h.Typeflag == tar.TypeSymlink && !inside(name, h.Linkname) {
		return &HostileError{name, "a link to " + h.Linkname + ", which is outside"}
	}
	if err := parents(root, name); err != nil {
		return err
	}
	perm := fs.FileMode(h.Mode) & 0o777
	if h.Typeflag == tar.TypeDir {
		return directory(root, name, perm|0o700)
	}
	if err := root.RemoveAll(name); err != nil {
		return err
	}
	if h.Typeflag == tar.TypeSymlink {
		return root.Symlink(h.Linkname, name)
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r.tar)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if !h.ModTime.IsZero() {
		_ = root.Chtimes(name, time.Time{}, h.ModTime) // only tools that compare times see it
	}
	return root.Chmod(name, perm)
}

// parents makes the directories above a name. A link or a file in the place of one is removed, so that
// nothing is written through it.
func parents(root *os.Root, name string) error {
	dir := path.Dir(name)
	if dir == "." {
		return nil
	}
	if err := parents(root, dir); err != nil {
		return err
	}
	return directory(root, dir, 0)
}

// directory makes one directory. perm 0: as the umask has it.
func directory(root *os.Root, name string, perm fs.FileMode) error {
	st, err := root.Lstat(name)
	if err == nil && !st.IsDir() {
		if err := root.Remove(name); err != nil {
			return err
		}
		err = fs.ErrNotExist
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = root.Mkdir(name, 0o777)
	}
	if err == nil && perm != 0 {
		err = root.Chmod(name, perm)
	}
	return err
}

// Remove removes what has a name in root, without following links. A name that is not there is not an error.
func Remove(root *os.Root, name string) error {
	if !allowed(name) {
		return &HostileError{name, "which is no name of a file in a workspace"}
	}
	for at := path.Dir(name); at != "."; at = path.Dir(at) {
		if st, err := root.Lstat(at); err == nil && !st.IsDir() { // what is behind a link is not what is meant
			return nil
		}
	}
	if err := root.RemoveAll(name); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return err
	}
	return nil
}

// Clear removes all that is in root, but for what has to do with a repository.
func Clear(root *os.Root) error {
	f, err := root.Open(".")
	if err != nil {
		return err
	}
	all, err := f.ReadDir(-1)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	for _, e := range all {
		if allowed(e.Name()) {
			if err := root.RemoveAll(e.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}
