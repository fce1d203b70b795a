package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/agent-troupe/troupe/internal/durable"
)

// FS is the directory of a job, as far as journals and the files beside them need it.
// Names are relative, with slashes. An implementation for tests can lose writes that
// were not synced; see package journaltest.
type FS interface {
	// Lock takes a lock for this process, or returns [ErrLocked]. holder is written into
	// the file for programs that find the lock taken.
	Lock(name, holder string) (io.Closer, error)
	// Read opens a file. A missing one is fs.ErrNotExist.
	Read(name string) (io.ReadCloser, error)
	// Create opens a new, empty file in place of any file of that name.
	Create(name string) (File, error)
	// Append opens a file to write after its first size bytes, and cuts what follows.
	Append(name string, size int64) (File, error)
	// Rename replaces a file by another one.
	Rename(from, to string) error
	// Remove removes a file. A missing one is fs.ErrNotExist.
	Remove(name string) error
	// Mkdir makes a directory and its parents. The name of "." is durable then; that of
	// another directory is after SyncDir of the one above it.
	Mkdir(name string) error
	// SyncDir makes the names in a directory durable.
	SyncDir(name string) error
}

// File is a file that is written from front to back.
type File interface {
	io.Writer
	// Sync makes what was written durable.
	Sync() error
	Close() error
}

// Dir returns a directory of this machine as an [FS]. It is made with the first file. No
// file is opened through a link, and no new one takes the place of a file without a new
// name: a project may come with a directory that has links to files of the user's.
func Dir(path string) FS { return dir(path) }

type dir string

// inside calls do with the directory, and the name of a file whose directories are not
// links.
func (d dir) inside(name string, do func(root *os.Root, name string) error) (err error) {
	name = filepath.FromSlash(name)
	if !filepath.IsLocal(name) {
		return fmt.Errorf("%q is not a name inside the job's directory", name)
	}
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(d.named(err), root.Close()) }()
	for at := filepath.Dir(name); at != "."; at = filepath.Dir(at) {
		if st, err := root.Lstat(at); err == nil && !st.IsDir() {
			return &fs.PathError{Op: "open", Path: at, Err: errNoDirectory}
		}
	}
	return do(root, name)
}

var (
	errNoDirectory = errors.New("it is not a directory, perhaps a link: remove it")
	errNoFile      = errors.New("it is not a regular file, perhaps a link: remove it")
)

// named is an error with the whole path of the file.
func (d dir) named(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) && !filepath.IsAbs(at.Path) {
		at.Path = filepath.Join(string(d), at.Path)
	}
	return err
}

// regular fails for what is there and is not a regular file.
func regular(root *os.Root, name string) error {
	st, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && st.Mode().IsRegular() {
		return nil
	}
	if err == nil {
		err = &fs.PathError{Op: "open", Path: name, Err: errNoFile}
	}
	return err
}

// Lock implements [FS]. The lock ends with the process.
func (d dir) Lock(name, holder string) (c io.Closer, err error) {
	err = d.inside(name, func(root *os.Root, name string) error {
		if err := regular(root, name); err != nil {
			return err
		}
		f, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		if err := lockFile(f); err != nil {
			by, _ := io.ReadAll(io.LimitReader(f, 256))
			_ = f.Close()
			return fmt.Errorf("%w (%s is held by %s)", err, filepath.Join(string(d), name), strings.TrimSpace(string(by)))
		}
		_ = f.Truncate(0)
		_, _ = f.WriteString(holder + "\n") // only for the error above
		c = locked{f}
		return nil
	})
	return c, err
}

// locked is a file that is locked. A process that is being started has a copy of each open
// file until it runs its program, so a close alone would keep the lock for a moment.
type locked struct{ *os.File }

func (l locked) Close() error { return errors.Join(unlockFile(l.File), l.File.Close()) }

// Read implements [FS].
func (d dir) Read(name string) (r io.ReadCloser, err error) {
	err = d.inside(name, func(root *os.Root, name string) error {
		if err := regular(root, name); err != nil {
			return err
		}
		f, err := root.Open(name)
		if err == nil {
			r = f
		}
		return err
	})
	return r, err
}

// Create implements [FS].
func (d dir) Create(name string) (f File, err error) {
	err = d.inside(name, func(root *os.Root, name string) error {
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
		f = dataFile{file}
		return err
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Append implements [FS].
func (d dir) Append(name string, size int64) (f File, err error) {
	err = d.inside(name, func(root *os.Root, name string) error {
		if err := regular(root, name); err != nil {
			return err
		}
		file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		if err := file.Truncate(size); err != nil {
			return errors.Join(err, file.Close())
		}
		f = dataFile{file}
		return nil
	})
	return f, err
}

// Rename implements [FS].
func (d dir) Rename(from, to string) error {
	return d.inside(from, func(root *os.Root, from string) error {
		return d.inside(to, func(_ *os.Root, to string) error { return root.Rename(from, to) })
	})
}

// Remove implements [FS].
func (d dir) Remove(name string) error {
	return d.inside(name, func(root *os.Root, name string) error { return root.Remove(name) })
}

// Mkdir implements [FS].
func (d dir) Mkdir(name string) error {
	if name == "." {
		return durable.Mkdir(string(d), 0o700)
	}
	return d.inside(path.Join(name, "x"), func(root *os.Root, name string) error { return root.MkdirAll(filepath.Dir(name), 0o700) })
}

// SyncDir implements [FS].
func (d dir) SyncDir(name string) error {
	return d.inside(path.Join(name, "x"), func(root *os.Root, name string) error { return durable.SyncDirOf(root.Open, filepath.Dir(name)) })
}

// dataFile syncs the content and the length of a file, not its times.
type dataFile struct{ *os.File }

// Sync implements [File].
func (f dataFile) Sync() error { return durable.SyncData(f.File) }

// WriteFile writes a file whole: after a crash it is there with all its content, or not
// at all. The directory of name must exist.
func WriteFile(f FS, name string, write func(io.Writer) error) error {
	return durable.Replace[File](f, name, path.Base(name)+durable.PartSuffix, write)
}
