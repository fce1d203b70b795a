package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// FS is the directory of a job, as far as journals and the files beside them need it.
// Names are relative, with slashes. An implementation for tests can lose writes that
// were not synced; see package journaltest.
type FS interface {
	// Lock takes a lock for this process, or returns [ErrLocked]. holder is written into
	// the file for whoever finds the lock taken.
	Lock(name, holder string) (io.Closer, error)
	// Read opens a file. A missing one is fs.ErrNotExist.
	Read(name string) (io.ReadCloser, error)
	// Create opens a new, empty file in place of any file of that name.
	Create(name string) (File, error)
	// Append opens a file to write after its first size bytes, and cuts what follows.
	Append(name string, size int64) (File, error)
	// Rename replaces a file by another one.
	Rename(from, to string) error
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

// Dir returns a directory of this machine as an [FS]. It is made with the first file.
func Dir(path string) FS { return dir(path) }

type dir string

func (d dir) path(name string) (string, error) {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return "", fmt.Errorf("%q is not a name inside the job's directory", name)
	}
	return filepath.Join(string(d), filepath.FromSlash(name)), nil
}

// Lock implements [FS]. The lock ends with the process.
func (d dir) Lock(name, holder string) (io.Closer, error) {
	path, err := d.path(name)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		by, _ := io.ReadAll(io.LimitReader(f, 256))
		_ = f.Close()
		return nil, fmt.Errorf("%w (%s is held by %s)", err, path, strings.TrimSpace(string(by)))
	}
	_ = f.Truncate(0)
	_, _ = f.WriteString(holder + "\n") // only for the error above
	return locked{f}, nil
}

// locked is a file that is locked. A process that is being started has a copy of each open
// file until it runs its program, so a close alone would keep the lock for a moment.
type locked struct{ *os.File }

func (l locked) Close() error { return errors.Join(unlockFile(l.File), l.File.Close()) }

// Read implements [FS].
func (d dir) Read(name string) (io.ReadCloser, error) {
	path, err := d.path(name)
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

// Create implements [FS].
func (d dir) Create(name string) (File, error) { return d.open(name, os.O_TRUNC) }

// Append implements [FS].
func (d dir) Append(name string, size int64) (File, error) {
	f, err := d.open(name, 0)
	if err != nil {
		return nil, err
	}
	if err := f.(dataFile).Truncate(size); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (d dir) open(name string, flag int) (File, error) {
	path, err := d.path(name)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|flag, 0o600)
	if err != nil {
		return nil, err
	}
	return dataFile{f}, nil
}

// Rename implements [FS].
func (d dir) Rename(from, to string) error {
	source, err := d.path(from)
	if err != nil {
		return err
	}
	target, err := d.path(to)
	if err != nil {
		return err
	}
	return os.Rename(source, target)
}

// Mkdir implements [FS].
func (d dir) Mkdir(name string) error {
	path, err := d.path(name)
	if err != nil {
		return err
	}
	if path == string(d) {
		return mkdirDurably(path)
	}
	return os.MkdirAll(path, 0o700)
}

func mkdirDurably(path string) error {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		return nil
	}
	parent := filepath.Dir(path)
	if _, err := os.Stat(parent); parent != path && errors.Is(err, fs.ErrNotExist) {
		if err := mkdirDurably(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(parent)
}

// SyncDir implements [FS].
func (d dir) SyncDir(name string) error {
	path, err := d.path(name)
	if err != nil {
		return err
	}
	return syncDir(path)
}

// dataFile syncs the content and the length of a file, not its times.
type dataFile struct{ *os.File }

// Sync implements [File].
func (f dataFile) Sync() error { return syncData(f.File) }

// WriteFile writes a file whole: after a crash it is there with all its content, or not
// at all. The directory of name must exist.
func WriteFile(f FS, name string, write func(io.Writer) error) error {
	part := name + ".part"
	file, err := f.Create(part)
	if err != nil {
		return err
	}
	if err := write(file); err != nil {
		return errors.Join(err, file.Close())
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := f.Rename(part, name); err != nil {
		return err
	}
	return f.SyncDir(filepath.ToSlash(filepath.Dir(name)))
}
