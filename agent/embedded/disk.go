package embedded

import (
	"io"
	"io/fs"
)

// disk is asked before the agent reads or changes a file. nil is the machine's disk, which
// fails by itself; a simulation's makes it fail, and sees in which order things are done.
type disk func(op, path string) error

// The operations that a disk is asked about.
const (
	diskRead   = "read"   // all of a file
	diskMake   = "make"   // a new file, or one that lines are appended to
	diskWrite  = "write"  // what the file is to have. If it fails, half of that is written
	diskSync   = "sync"   // what was written is to survive a loss of power
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
