package session

import (
	"io"
	"io/fs"
)

// Files is where files are written that have to survive a loss of power: a store in a
// directory, edits of transcripts, the runtime's own records. Names are paths of the
// machine. Only changes go through it: readers open the machine's files, so another
// implementation makes the same changes there, as that of package journaltest does. It is
// safe for concurrent use.
type Files interface {
	// Create opens a new, empty file with mode 0600. A file or link of that name is removed
	// before.
	Create(name string) (FileWriter, error)
	// Append opens a file to write at its end. A missing one is made.
	Append(name string) (FileWriter, error)
	// Rename replaces a file by another one.
	Rename(from, to string) error
	// Remove removes a file. A missing one is fs.ErrNotExist.
	Remove(name string) error
	// Mkdir makes a directory and its parents. Their names are durable then.
	Mkdir(name string, mode fs.FileMode) error
	// SyncDir makes the names in a directory durable.
	SyncDir(name string) error
}

// FileWriter is a file that is written from front to back.
type FileWriter interface {
	io.Writer
	// Sync makes what was written durable.
	Sync() error
	Close() error
}
