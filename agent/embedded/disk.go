package embedded

import (
	"io"
	"io/fs"

	"github.com/agent-troupe/troupe/internal/durable"
)

// disk is asked before the agent reads or changes a file. nil is the machine's disk, which
// fails by itself; a simulation's makes it fail, and sees in which order things are done.
type disk func(op, path string) error

// The operations that a disk is asked about.
const (
	diskRead   = "read"   // all of a file
	diskMake   = "make"   // a new file, or one that lines are appended to
	diskWrite  = "write"  // what the file is to have. If it fails, half of that is written
	diskSync   = "sync"   // what was written, or the names in a directory, is to survive a loss of power
	diskRename = "rename" // the file gets its name
)

// ask returns why the operation fails, or nil if it may be done.
func (d disk) ask(op, path string) error {
	if d == nil {
		return nil
	}
	if err := d(op, path); err != nil {
		return &fs.PathError{Op: op, Path: path, Err: err}
	}
	return nil
}

// sync makes durable what was written to f, which is the file at path.
func (d disk) sync(f interface{ Sync() error }, path string) error {
	if err := d.ask(diskSync, path); err != nil {
		return err
	}
	return f.Sync()
}

// syncDir makes durable the names in a directory.
func (d disk) syncDir(path string) error {
	if err := d.ask(diskSync, path); err != nil {
		return err
	}
	return durable.Files(nil).SyncDir(path)
}

// write writes b to f, which is the file at path.
func (d disk) write(f io.Writer, path string, b []byte) error {
	failed := d.ask(diskWrite, path)
	if failed != nil {
		b = b[:len(b)/2]
	}
	if _, err := f.Write(b); failed == nil {
		return err
	}
	return failed
}
