package parcel

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/agent-troupe/troupe/base/shown"
)

// maxEntries is how many entries a parcel may have.
const maxEntries = 200_000

// TooLargeError says that a parcel would be larger than it may be.
type TooLargeError struct {
	Name  string // where it became too large
	Limit int64  // in bytes; 0: it is the number of entries
}

func (e *TooLargeError) Error() string {
	if e.Limit == 0 {
		return fmt.Sprintf("there are more than %d files, the next one is %s", maxEntries, e.Name)
	}
	return fmt.Sprintf("the files are larger than %d MB together, up to %s", e.Limit>>20, e.Name)
}

// budget is what a parcel may still have.
type budget struct {
	limit, left int64
	entries     int
}

func (b *budget) take(name string, size int64) error {
	if b.entries++; b.entries > maxEntries {
		return &TooLargeError{Name: name}
	}
	if b.left -= size; size < 0 || b.left < 0 {
		return &TooLargeError{Name: name, Limit: b.limit}
	}
	return nil
}

// Packer writes a parcel.
type Packer struct {
	tar *tar.Writer
	budget
	// Left are the files that were left out, with the reason.
	Left []string
}

// NewPacker writes a parcel of at most limit bytes to w.
func NewPacker(w io.Writer, limit int64) *Packer {
	return &Packer{tar: tar.NewWriter(w), budget: budget{limit: limit, left: limit}}
}

// Close ends the parcel.
func (p *Packer) Close() error { return p.tar.Close() }

// Bytes adds a file of the caller's.
func (p *Packer) Bytes(name string, content []byte) error {
	if err := p.head(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: 0o600}); err != nil {
		return err
	}
	_, err := p.tar.Write(content)
	return err
}

// From adds a file of the caller's from the disk.
func (p *Packer) From(name string, f *os.File) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	return p.copy(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: st.Size(), Mode: 0o600}, f)
}

// Files adds files, links and directories of root below prefix. A name that is not there is in gone. Files that a
// parcel cannot have are left out, see Left.
func (p *Packer) Files(prefix string, root *os.Root, names []string) (gone []string, err error) {
	for _, name := range names {
		there, err := p.entry(prefix, root, name)
		if err != nil {
			return nil, err
		}
		if !there {
			gone = append(gone, name)
		}
	}
	return gone, nil
}

// Tree adds all that is in root, below prefix.
func (p *Packer) Tree(prefix string, root *os.Root) error { return p.dir(prefix, root, ".") }

func (p *Packer) dir(prefix string, root *os.Root, name string) error {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may be a pipe by now
	if err != nil {
		return err
	}
	all, err := f.ReadDir(-1)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	for _, e := range all {
		name := path.Join(name, e.Name())
		if _, err := p.entry(prefix, root, name); err != nil {
			return err
		}
		if e.IsDir() && allowed(name) {
			if err := p.dir(prefix, root, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

func (p *Packer) skip(name, why string) { p.Left = append(p.Left, name+", which is "+why) }

// entry adds one file. there is false if it does not exist.
func (p *Packer) entry(prefix string, root *os.Root, name string) (there bool, err error) {
	if at := strings.TrimSuffix(name, "/"); at != name || !allowed(at) {
		if ofGit(at) || at != name {
			p.skip(at, "a repository of its own, or a part of one")
		} else {
			p.skip(at, "a name that other systems do not have")
		}
		return true, nil
	}
	st, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	h := &tar.Header{Name: path.Join(prefix, name), Mode: int64(st.Mode().Perm()), ModTime: st.ModTime()}
	switch st.Mode().Type() {
	case fs.ModeDir:
		h.Typeflag = tar.TypeDir
		return true, p.head(h)
	case fs.ModeSymlink:
		h.Typeflag = tar.TypeSymlink
		if h.Linkname, err = root.Readlink(name); err != nil {
			return false, err
		}
		if !inside(name, h.Linkname) {
			p.skip(name, "a link to "+shown.Head(h.Linkname, 100))
			return true, nil
		}
		return true, p.head(h)
	case 0:
		return true, p.file(root, name, h)
	}
	p.skip(name, "a socket, a pipe or a device")
	return true, nil
}

func (p *Packer) file(root *os.Root, name string, h *tar.Header) error {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file any more", name)
	}
	h.Typeflag, h.Size = tar.TypeReg, st.Size()
	return p.copy(h, f)
}

func (p *Packer) copy(h *tar.Header, f io.Reader) error {
	if err := p.head(h); err != nil {
		return err
	}
	if _, err := io.CopyN(p.tar, f, h.Size); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("it became shorter while it was read")
		}
		return fmt.Errorf("%s: %w", h.Name, err)
	}
	return nil
}

func (p *Packer) head(h *tar.Header) error {
	if err := p.take(h.Name, h.Size); err != nil {
		return err
	}
	h.Format = tar.FormatPAX
	return p.tar.WriteHeader(h)
}
