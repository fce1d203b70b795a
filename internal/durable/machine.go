package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/agent-troupe/troupe/session"
)

// Files returns the files that an option names; nil: those of the machine.
func Files(set session.Files) session.Files {
	if set != nil {
		return set
	}
	return machine{}
}

// machine are the files of this machine.
type machine struct{}

// Create follows no link, because an agent may have put one into the directory.
func (machine) Create(name string) (session.FileWriter, error) {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return open(name, os.O_EXCL)
}

func (machine) Append(name string) (session.FileWriter, error) { return open(name, os.O_APPEND) }

func open(name string, flag int) (session.FileWriter, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|flag, 0o600)
	if err != nil {
		return nil, err
	}
	return file{f}, nil
}

func (machine) Rename(from, to string) error { return os.Rename(from, to) }

func (machine) Remove(name string) error { return os.Remove(name) }

func (machine) Mkdir(name string, mode fs.FileMode) error { return Mkdir(name, mode) }

func (machine) SyncDir(name string) error { return SyncDir(name) }

type file struct{ *os.File }

// Sync implements [session.FileWriter].
func (f file) Sync() error { return SyncData(f.File) }

// Mkdir makes a directory and its parents, and their names durable.
func Mkdir(path string, mode fs.FileMode) error {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		return nil
	}
	parent := filepath.Dir(path)
	if _, err := os.Stat(parent); parent != path && errors.Is(err, fs.ErrNotExist) {
		if err := Mkdir(parent, mode); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return SyncDir(parent)
}

// SyncDir makes the names in a directory durable, where the file system can. One that cannot
// keeps them as well as it does.
func SyncDir(path string) error { return SyncDirOf(os.Open, path) }

// SyncDirOf is [SyncDir] for a directory that is opened by open.
func SyncDirOf(open func(string) (*os.File, error), path string) error {
	err := syncDir(open, path)
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}
