package journaltest

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"path"
	"slices"
	"sync"

	"github.com/agent-troupe/troupe/fleet/journal"
)

// Disk is a journal.FS in memory that remembers every operation, so that
// [Disk.Crash] can say what a loss of power leaves. It is safe for concurrent use.
type Disk struct {
	// Fail, if set, is asked before each operation, which then has its error. A write
	// that fails has written half of its bytes.
	Fail func(Op) error

	mu     sync.Mutex
	ops    []Op
	locked map[string]bool
	start  map[string][]byte // what was there before the first operation
}

// Kind is the kind of an operation of a [Disk].
type Kind string

// Kinds of operations.
const (
	Create  Kind = "create"
	Cut     Kind = "cut" // a truncation
	Write   Kind = "write"
	Sync    Kind = "sync"
	Rename  Kind = "rename"
	Remove  Kind = "remove"
	SyncDir Kind = "syncdir"
)

// Op is an operation of a [Disk].
type Op struct {
	Kind Kind
	Name string // file, or directory
	To   string // of a rename
	Data []byte // of a write
	Size int64  // of a cut
	file int    // the file that the name meant then
}

// Ops returns the number of operations so far.
func (d *Disk) Ops() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.ops)
}

// Loose returns how many of the first n operations were not durable yet: these a crash
// may lose.
func (d *Disk) Loose(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	loose := 0
	for _, l := range d.looseOf(n) {
		if l {
			loose++
		}
	}
	return loose
}

// Crash returns the disk after a crash that followed the first n operations. Durable
// operations are kept. survives is called with the number, from 0, of each operation
// that was not durable, and returns how much of it the disk has: 0 nothing, 1 the first
// half of a write, 2 all. A hole reads as zeros.
func (d *Disk) Crash(n int, survives func(i int) int) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	loose, i := d.looseOf(n), 0
	s := newState(d.start)
	for at, op := range d.ops[:n] {
		how := 2
		if loose[at] {
			how = survives(i)
			i++
		}
		s.apply(op, how)
	}
	return &Disk{start: s.contents()}
}

// Crashes yields every disk that a crash can leave, with the number of operations before the
// crash. There are three for each operation that was not durable, multiplied: a test keeps
// its history short.
func (d *Disk) Crashes() iter.Seq2[int, *Disk] {
	return func(yield func(int, *Disk) bool) {
		for n := 0; n <= d.Ops(); n++ {
			states := 1
			for range d.Loose(n) {
				states *= 3
			}
			for state := range states {
				after := d.Crash(n, func(i int) int {
					how := state
					for range i {
						how /= 3
					}
					return how % 3
				})
				if !yield(n, after) {
					return
				}
			}
		}
	}
}

// looseOf reports which of the first n operations were not durable; mu is held.
func (d *Disk) looseOf(n int) []bool {
	loose := make([]bool, n)
	for at, op := range d.ops[:n] {
		loose[at] = op.Kind != Sync && op.Kind != SyncDir
		for before := range at {
			switch b := d.ops[before]; op.Kind {
			case Sync: // of the content; the name is the directory's
				if b.file == op.file && (b.Kind == Write || b.Kind == Cut) {
					loose[before] = false
				}
			case SyncDir:
				if b.Kind == Create || b.Kind == Rename || b.Kind == Remove {
					loose[before] = false
				}
			}
		}
	}
	return loose
}

// state is the content of a disk while operations are replayed. A file lives on under
// its number when its name goes to another one.
type state struct {
	names map[string]int
	files map[int][]byte
	next  int
}

func newState(start map[string][]byte) *state {
	s := &state{names: map[string]int{}, files: map[int][]byte{}}
	for _, name := range slices.Sorted(maps.Keys(start)) { // a file has the same number each time
		s.files[-1-s.next] = bytes.Clone(start[name])
		s.names[name] = -1 - s.next
		s.next++
	}
	return s
}

// offsets of writes do not move when an earlier one is lost.
func (s *state) apply(op Op, how int) {
	switch op.Kind {
	case Create:
		if how > 0 {
			s.names[op.Name] = op.file
		}
	case Rename:
		if n, ok := s.names[op.Name]; ok && how > 0 {
			delete(s.names, op.Name)
			s.names[op.To] = n
		}
	case Remove:
		if how > 0 {
			delete(s.names, op.Name)
		}
	case Cut:
		if data := s.files[op.file]; how > 0 && int64(len(data)) > op.Size {
			s.files[op.file] = data[:op.Size]
		}
	case Write:
		part := op.Data
		if how == 1 {
			part = part[:len(part)/2]
		}
		if how > 0 {
			data := s.files[op.file]
			if end := op.Size + int64(len(part)); int64(len(data)) < end {
				data = append(data, make([]byte, end-int64(len(data)))...)
			}
			copy(data[op.Size:], part)
			s.files[op.file] = data
		}
	}
}

func (s *state) contents() map[string][]byte {
	all := make(map[string][]byte, len(s.names))
	for name, n := range s.names {
		all[name] = s.files[n]
	}
	return all
}

// now is the state that a reader sees; mu is held.
func (d *Disk) now() *state {
	s := newState(d.start)
	for _, op := range d.ops {
		s.apply(op, 2)
	}
	return s
}

// do records an operation; mu is held.
func (d *Disk) do(op Op) error {
	op.Name = path.Clean(op.Name)
	if d.Fail != nil {
		if err := d.Fail(op); err != nil {
			if op.Kind == Write {
				op.Data = op.Data[:len(op.Data)/2]
				d.ops = append(d.ops, op)
			}
			return err
		}
	}
	d.ops = append(d.ops, op)
	return nil
}

type unlock func()

func (u unlock) Close() error { u(); return nil }

// Lock implements journal.FS.
func (d *Disk) Lock(name, _ string) (io.Closer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.locked[name] {
		return nil, journal.ErrLocked
	}
	if d.locked == nil {
		d.locked = map[string]bool{}
	}
	d.locked[name] = true
	return unlock(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.locked, name)
	}), nil
}

// Read implements journal.FS.
func (d *Disk) Read(name string) (io.ReadCloser, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	data, ok := d.now().contents()[path.Clean(name)]
	if !ok {
		return nil, fmt.Errorf("read %s: %w", name, fs.ErrNotExist)
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

// Create implements journal.FS.
func (d *Disk) Create(name string) (journal.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := &diskFile{disk: d, name: path.Clean(name), number: len(d.ops) + 1}
	return f, d.do(Op{Kind: Create, Name: name, file: f.number})
}

// Append implements journal.FS.
func (d *Disk) Append(name string, size int64) (journal.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := &diskFile{disk: d, name: path.Clean(name), number: d.now().names[path.Clean(name)], size: size}
	return f, d.do(Op{Kind: Cut, Name: name, file: f.number, Size: size})
}

// Rename implements journal.FS.
func (d *Disk) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.do(Op{Kind: Rename, Name: from, To: path.Clean(to)})
}

// Remove implements journal.FS.
func (d *Disk) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.now().names[path.Clean(name)]; !ok {
		return fmt.Errorf("remove %s: %w", name, fs.ErrNotExist)
	}
	return d.do(Op{Kind: Remove, Name: name})
}

// Mkdir implements journal.FS. Every directory exists.
func (*Disk) Mkdir(string) error { return nil }

// SyncDir implements journal.FS. It makes all names durable.
func (d *Disk) SyncDir(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.do(Op{Kind: SyncDir, Name: name})
}

type diskFile struct {
	disk   *Disk
	name   string
	number int
	size   int64
}

// Write implements journal.File.
func (f *diskFile) Write(p []byte) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if err := f.disk.do(Op{Kind: Write, Name: f.name, file: f.number, Data: bytes.Clone(p), Size: f.size}); err != nil {
		return len(p) / 2, err
	}
	f.size += int64(len(p))
	return len(p), nil
}

// Sync implements journal.File.
func (f *diskFile) Sync() error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	return f.disk.do(Op{Kind: Sync, Name: f.name, file: f.number})
}

// Close implements journal.File.
func (*diskFile) Close() error { return nil }
