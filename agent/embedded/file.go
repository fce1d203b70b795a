package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/agent-troupe/troupe/internal/durable"
	"github.com/agent-troupe/troupe/session"
)

// file is the file of a session. It is open while the agent works. A line that could not be
// written is written before the next one. Its
// methods are safe for concurrent use.
type file struct {
	disk disk

	mu      sync.Mutex
	name    string
	out     session.FileWriter // nil while it is closed
	waiting []byte
	dirty   bool  // something was written since the last sync
	syncing bool  // a sync is under way
	closing bool  // it is closed when that has ended
	named   bool  // the name is durable
	broken  error // a sync has failed: the disk may lack lines
}

// append writes a line at the end.
func (f *file) append(name string, line []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.name = name
	f.waiting = append(f.waiting, line...)
	if f.broken != nil {
		return f.broken
	}
	if err := f.write(); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func (f *file) write() error {
	f.closing = false // it is in use again
	if f.out == nil {
		if err := f.open(); err != nil {
			return err
		}
	}
	failed, b := f.disk.ask(diskWrite, f.name), f.waiting
	if failed != nil {
		b = b[:len(b)/2]
	}
	n, err := f.out.Write(b)
	f.dirty = f.dirty || n > 0
	if f.waiting = f.waiting[min(max(n, 0), len(f.waiting)):]; len(f.waiting) == 0 {
		f.waiting = nil
	}
	if failed != nil {
		return failed
	}
	return err
}

// open opens the file. A last line that a death has torn is ended.
func (f *file) open() error {
	if err := f.disk.ask(diskMake, f.name); err != nil {
		return err
	}
	files := durable.Files(nil)
	if err := files.Mkdir(filepath.Dir(f.name), 0o700); err != nil {
		return err
	}
	torn, err := isTorn(f.name)
	if err != nil {
		return err
	}
	if f.out, err = files.Append(f.name); err != nil {
		f.out = nil
		return err
	}
	if torn {
		f.waiting = append([]byte{'\n'}, f.waiting...)
	}
	return nil
}

// isTorn reports whether a file ends within a line. This program's own half lines are not
// torn: their rest waits.
func isTorn(name string) (bool, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return false, err
	}
	if !info.Mode().IsRegular() {
		return false, fmt.Errorf("%s is no file", name)
	}
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, info.Size()-1); err != nil {
		return false, err
	}
	return last[0] != '\n', nil
}

// errBusy says that the disk has not taken what was synced before.
var errBusy = errors.New("the disk is busy with what was written before")

// sync makes durable what was written. Lines may be appended meanwhile.
func (f *file) sync() error {
	f.mu.Lock()
	out, name, named := f.out, f.name, f.named
	err := f.broken
	if err == nil && f.syncing {
		err = errBusy
	}
	if err != nil || !f.dirty || out == nil {
		f.mu.Unlock()
		return err
	}
	f.dirty, f.syncing = false, true
	f.mu.Unlock()
	err = f.disk.sync(out, name)
	if err == nil && !named {
		err = f.disk.syncDir(filepath.Dir(name))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.syncing = false
	if err != nil {
		f.broken = fmt.Errorf("sync %s: %w", name, err)
	}
	f.named = f.named || err == nil
	if f.closing {
		f.shut()
	}
	return f.broken
}

// complete returns an error if lines wait to be written.
func (f *file) complete() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken != nil {
		return f.broken
	}
	if len(f.waiting) > 0 {
		return fmt.Errorf("lines of the session are not written to %s yet", f.name)
	}
	return nil
}

// close closes the file until something is written again. Unless it is the end, it stays
// open while a part of a line waits, which would begin one in a file that is opened again.
func (f *file) close(end bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.out == nil, len(f.waiting) > 0 && !end:
	case f.syncing:
		f.closing = true
	default:
		f.shut()
	}
}

// shut closes the file; the caller has the lock.
func (f *file) shut() {
	err := f.out.Close()
	if err != nil && f.dirty && f.broken == nil {
		f.broken = fmt.Errorf("close %s: %w", f.name, err)
	}
	f.out, f.closing = nil, false
}
