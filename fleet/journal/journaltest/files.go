package journaltest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/agent-troupe/troupe/internal/durable"
	"github.com/agent-troupe/troupe/session"
)

// Files returns functions that change the files of the machine below root and record each
// change on the disk, so that [Disk.Fail] and [Disk.Crash] apply to it. Existing files are
// durable. It is called once for a disk, before its first operation.
func (d *Disk) Files(root string) (session.Files, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.start == nil {
		d.start = make(map[string][]byte)
	}
	err := filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		d.start[filepath.ToSlash(rel)], err = os.ReadFile(name) //nolint:gosec // a directory of the test
		return err
	})
	return &twin{disk: d, root: root, machine: durable.Files(nil)}, err
}

// WriteTo writes what is on the disk to a directory of the machine.
func (d *Disk) WriteTo(root string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, data := range d.now().contents() { //troupe:maporder the files are independent
		name = filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(name, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// twin makes each change on a disk and on the machine.
type twin struct {
	disk    *Disk
	root    string
	machine session.Files
}

func (t *twin) name(name string) (string, error) {
	rel, err := filepath.Rel(t.root, name)
	return filepath.ToSlash(rel), err
}

// Create implements session.Files.
func (t *twin) Create(name string) (session.FileWriter, error) {
	return t.open(name, t.machine.Create, func(rel string) (session.FileWriter, error) { return t.disk.Create(rel) })
}

// Append implements session.Files.
func (t *twin) Append(name string) (session.FileWriter, error) {
	info, err := os.Stat(name)
	return t.open(name, t.machine.Append, func(rel string) (session.FileWriter, error) {
		if err != nil { // it is new
			return t.disk.Create(rel)
		}
		return t.disk.Append(rel, info.Size())
	})
}

func (t *twin) open(name string, machine, disk func(string) (session.FileWriter, error)) (session.FileWriter, error) {
	rel, err := t.name(name)
	if err != nil {
		return nil, err
	}
	on, err := disk(rel)
	if err != nil {
		return nil, err
	}
	f, err := machine(name)
	if err != nil {
		return nil, err
	}
	return &twinFile{disk: on, FileWriter: f}, nil
}

// Rename implements session.Files.
func (t *twin) Rename(from, to string) error {
	source, err := t.name(from)
	if err != nil {
		return err
	}
	target, err := t.name(to)
	if err == nil {
		err = t.disk.Rename(source, target)
	}
	if err != nil {
		return err
	}
	return t.machine.Rename(from, to)
}

// Remove implements session.Files.
func (t *twin) Remove(name string) error {
	rel, err := t.name(name)
	if err == nil {
		err = t.disk.Remove(rel)
	}
	if err != nil {
		return err
	}
	return t.machine.Remove(name)
}

// Mkdir implements session.Files. A disk has every directory.
func (t *twin) Mkdir(name string, mode fs.FileMode) error { return t.machine.Mkdir(name, mode) }

// SyncDir implements session.Files. Of the machine nothing has to survive.
func (t *twin) SyncDir(name string) error {
	rel, err := t.name(name)
	if err != nil {
		return err
	}
	return t.disk.SyncDir(rel)
}

type twinFile struct {
	session.FileWriter
	disk session.FileWriter
}

// Write implements session.FileWriter.
func (f *twinFile) Write(p []byte) (int, error) {
	n, err := f.disk.Write(p)
	m, written := f.FileWriter.Write(p[:n])
	return m, errors.Join(err, written)
}

// Sync implements session.FileWriter.
func (f *twinFile) Sync() error { return f.disk.Sync() }
