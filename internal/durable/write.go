package durable

import (
	"errors"
	"io"
	"path/filepath"

	"github.com/agent-troupe/troupe/session"
)

// Place is a [session.Files], or the directory of a job, whose names are relative.
type Place[F session.FileWriter] interface {
	Create(name string) (F, error)
	Rename(from, to string) error
	Remove(name string) error
	SyncDir(name string) error
}

// PartSuffix ends the name of a file that is being written. After a crash one may be left.
const PartSuffix = ".part"

// Replace writes a file whole: after a crash it is there with all its new content, or as it
// was before. Once Replace has returned nil, it is the new one. It writes another file
// first, whose name is part in the same directory, and removes that one if it fails. The
// directory must exist.
func Replace[F session.FileWriter](at Place[F], name, part string, write func(io.Writer) error) error {
	dir := filepath.Dir(name)
	part = filepath.ToSlash(filepath.Join(dir, part))
	f, err := at.Create(part)
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = at.Rename(part, name)
	}
	if err != nil {
		_ = at.Remove(part) // the error before says more
		return err
	}
	return at.SyncDir(filepath.ToSlash(dir))
}

// WriteFile is [Replace] for a file of the machine. The other file is hidden, since name may
// be in a directory of the user's.
func WriteFile(at session.Files, name string, write func(io.Writer) error) error {
	return Replace(at, name, "."+filepath.Base(name)+PartSuffix, write)
}

// Remove removes a file of the machine, so that it does not come back. A missing one is
// fs.ErrNotExist.
func Remove(at session.Files, name string) error {
	if err := at.Remove(name); err != nil {
		return err
	}
	return at.SyncDir(filepath.Dir(name))
}

// Bytes is the content of a file for [WriteFile].
func Bytes(content []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	}
}
