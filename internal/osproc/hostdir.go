package osproc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/agent-troupe/troupe/internal/kernel"
)

// hostPrefix starts the name of every host directory. The rest of the name is for
// people: <host pid>_<id>. The lock says who is alive.
const hostPrefix = "troupe-host-"

// sparePrefix starts the name of a record that has ended.
const sparePrefix = "ended-"

// HostDir is this host's directory below one that other programs use too, such as
// the system's directory for temporary files. It exists, and is locked, while it has
// entries. The operating system gives up the lock of a host that dies, however it
// does, so a later host knows what has no owner any more; a recycled pid, another
// pid namespace or a restart of the machine cannot mislead it. Safe for concurrent
// use.
type HostDir struct {
	base string
	rand kernel.Rand

	mu      sync.Mutex
	path    string   // empty without a directory
	lock    *os.File // nil where directories cannot be locked: then it is never swept
	entries int
	spare   []string // records that have ended; see Record
	ended   int      // how many have
}

// NewHostDir returns a directory below base; it makes nothing.
func NewHostDir(base string, rand kernel.Rand) *HostDir { return &HostDir{base: base, rand: rand} }

// Add makes an empty directory with mode 0700 and returns its path.
func (h *HostDir) Add(name string) (path string, err error) {
	return h.add(name, func(path string) error { return os.Mkdir(path, 0o700) })
}

// Record makes an empty file, for an entry that is only a name. An earlier record that has
// ended gets the new name, if there is one: file systems make and remove files slowly.
func (h *HostDir) Record(name string) (path string, err error) {
	return h.add(name, func(path string) error {
		if n := len(h.spare); n > 0 {
			from := h.spare[n-1]
			h.spare = h.spare[:n-1]
			if os.Rename(from, path) == nil {
				return nil
			}
		}
		return makeRecord(path)
	})
}

func makeRecord(path string) error { return writeNew(path, nil) }

// End ends an entry that Record has made, unless keep is set: a later host finds its name
// then.
func (h *HostDir) End(path string, keep bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var err error
	if !keep {
		h.ended++
		spare := filepath.Join(h.path, sparePrefix+strconv.Itoa(h.ended))
		if err = os.Rename(path, spare); err == nil {
			h.spare = append(h.spare, spare)
		} else if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	h.entries--
	return errors.Join(err, h.closeUnused())
}

func (h *HostDir) add(name string, create func(string) error) (path string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.entries == 0 {
		if err := h.open(); err != nil {
			return "", err
		}
	}
	path = filepath.Join(h.path, name)
	err = create(path)
	if errors.Is(err, fs.ErrNotExist) { // another program cleans up the directory for temporary files
		if err = h.open(); err == nil {
			path = filepath.Join(h.path, name)
			err = create(path)
		}
	}
	if err != nil {
		return "", errors.Join(err, h.closeUnused())
	}
	h.entries++
	return path, nil
}

// Remove ends an entry that Add has made. It removes what is in it, and the entry too
// unless keep is set: a later host finds its name then.
func (h *HostDir) Remove(path string, keep bool) error {
	err := os.RemoveAll(path)
	if keep && err == nil {
		err = makeRecord(path)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.entries--
	return errors.Join(err, h.closeUnused())
}

// Path returns where the directory is now; empty without entries.
func (h *HostDir) Path() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.path
}

// open makes the directory and locks it. Another host may sweep it between the two.
func (h *HostDir) open() error {
	if h.lock != nil {
		_ = h.lock.Close()
		h.lock = nil
	}
	h.spare = nil
	for {
		path := filepath.Join(h.base, fmt.Sprintf("%s%d_%s", hostPrefix, os.Getpid(), kernel.NewID(h.rand)))
		if err := os.Mkdir(path, 0o700); err != nil {
			return err
		}
		lock, err := lockDir(path)
		switch {
		case err == nil:
			h.path, h.lock = path, lock
			return nil
		case errors.Is(err, errors.ErrUnsupported):
			h.path = path
			return nil
		case !errors.Is(err, errOwned) && !errors.Is(err, fs.ErrNotExist):
			return errors.Join(err, os.Remove(path))
		}
	}
}

// closeUnused removes the directory if it has no entry; mu is held.
func (h *HostDir) closeUnused() error {
	if h.entries > 0 || h.path == "" {
		return nil
	}
	for _, spare := range h.spare {
		_ = os.Remove(spare) // else the directory stays
	}
	h.spare = nil
	err := os.Remove(h.path)
	if errors.Is(err, fs.ErrNotExist) || holdsEntries(h.path) { // kept ones
		err = nil
	}
	if h.lock != nil {
		err = errors.Join(err, h.lock.Close())
	}
	h.path, h.lock = "", nil
	return err
}

func holdsEntries(dir string) bool {
	names, err := os.ReadDir(dir)
	return err == nil && len(names) > 0
}

// errOwned is the error of a host directory whose host lives.
var errOwned = errors.New("osproc: the directory's host lives")

// deadHosts returns the host directories below base whose hosts have died, locked.
// The caller closes the locks. Directories of other users are left out.
func deadHosts(base string) (dirs []*os.File, err error) {
	entries, err := os.ReadDir(base)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), hostPrefix) || !e.IsDir() {
			continue
		}
		if lock, err := lockDir(filepath.Join(base, e.Name())); err == nil {
			dirs = append(dirs, lock)
		}
	}
	return dirs, nil
}
