package fleet

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/agent-troupe/troupe/fleet/journal"
)

// copier copies a directory for a workspace.
type copier struct {
	from, to *os.Root
	// apart reports whether a directory is not part of the copy, such as the one of a job.
	apart   func(name string, d fs.FileInfo) string
	skipped []string // with the reason
}

// copyTree copies a directory: regular files with their modes, directories and links. It leaves
// out the directories of jobs, and files that cannot be copied, and warns of both, except of the
// job's own directory.
func (ws *workspaces) copyTree(from, to string) (err error) {
	if err := os.Mkdir(to, 0o777); err != nil { //nolint:gosec // as cp makes it; umask decides
		return err
	}
	source, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	target, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	own, err := os.Stat(ws.root)
	var spaces fs.FileInfo
	if err == nil {
		spaces, err = os.Stat(filepath.Join(ws.root, workspacesDir))
	}
	if err != nil {
		return err
	}
	c := &copier{from: source, to: target}
	c.apart = func(name string, d fs.FileInfo) string {
		if os.SameFile(d, own) || os.SameFile(d, spaces) {
			return "own"
		}
		if ofJob(filepath.Join(from, filepath.FromSlash(name))) {
			return "the directory of another job"
		}
		return ""
	}
	if err := c.dir("."); err != nil {
		return err
	}
	const most = 5
	if n := len(c.skipped); n > 0 {
		text := strings.Join(c.skipped[:min(n, most)], "; ")
		if n > most {
			text += fmt.Sprintf("; and %d more", n-most)
		}
		ws.post(remarked{"not in the copies of " + from + ": " + text})
	}
	return nil
}

// ofJob reports whether a directory is that of a job.
func ofJob(dir string) bool {
	for _, name := range []string{journal.Name, journal.LockName} {
		if st, err := os.Lstat(filepath.Join(dir, name)); err != nil || !st.Mode().IsRegular() {
			return false
		}
	}
	return true
}

func (c *copier) dir(name string) error {
	f, err := c.from.Open(name)
	if name != "." && errors.Is(err, fs.ErrNotExist) { // removed meanwhile
		return nil
	}
	if err != nil {
		return err
	}
	all, err := f.ReadDir(-1)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	for _, e := range all {
		if err := c.entry(path.Join(name, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) entry(name string) error {
	st, err := c.from.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
		return nil
	}
	if err != nil {
		return err
	}
	switch st.Mode().Type() {
	case fs.ModeDir:
		if why := c.apart(name, st); why != "" {
			if why != "own" {
				c.skip(name, why)
			}
			return nil
		}
		if err := c.to.Mkdir(name, 0o777); err != nil {
			return err
		}
		return c.dir(name)
	case fs.ModeSymlink:
		target, err := c.from.Readlink(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return c.to.Symlink(target, name)
	case 0:
		return c.file(name, st)
	case fs.ModeSocket:
		c.skip(name, "a socket")
	case fs.ModeNamedPipe:
		c.skip(name, "a named pipe")
	default:
		c.skip(name, "a device")
	}
	return nil
}

func (c *copier) skip(name, why string) {
	c.skipped = append(c.skipped, filepath.FromSlash(name)+", which is "+why)
}

func (c *copier) file(name string, st fs.FileInfo) error {
	in, err := c.from.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) { // such as the lock of a git that tidies up in the background
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := c.to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666|st.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
