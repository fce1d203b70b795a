package journal

import (
	"context"
	"errors"
	"io"
	"path"
	"sync"

	"github.com/agent-troupe/troupe/session"
)

// keepersAtOnce is how many files are made durable at a time. Syncs of many files from as
// many threads hinder each other: on ext4, 64 at once were slower by a factor of seven
// than 8.
const keepersAtOnce = 8

// Keeper makes files below a directory durable, with the names that lead to them. It is
// for files that a record will name, which must be durable before it.
type Keeper struct {
	fs   FS
	exec session.Executor

	mu      sync.Mutex
	busy    int
	waiting []chan struct{}
}

// NewKeeper returns a keeper of the files in a directory.
func NewKeeper(fs FS, exec session.Executor) *Keeper { return &Keeper{fs: fs, exec: exec} }

// Keep makes the content of f durable and closes it, and then the names from the file up
// to the directory top, which has a durable name itself.
func (k *Keeper) Keep(f File, name, top string) error {
	defer k.enter()()
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return k.names(path.Dir(name), top)
}

// WriteFile is the function of that name, which makes only the file's own name durable;
// here the names of its directories are, too.
func (k *Keeper) WriteFile(name, top string, write func(io.Writer) error) error {
	defer k.enter()()
	if err := WriteFile(k.fs, name, write); err != nil || path.Dir(name) == top {
		return err
	}
	return k.names(path.Dir(path.Dir(name)), top)
}

func (k *Keeper) names(dir, top string) error {
	for ; ; dir = path.Dir(dir) {
		if err := k.fs.SyncDir(dir); err != nil || dir == top || dir == "." {
			return err
		}
	}
}

// enter waits for a place, and returns what leaves it.
func (k *Keeper) enter() (leave func()) {
	k.mu.Lock()
	if k.busy < keepersAtOnce {
		k.busy++
		k.mu.Unlock()
		return k.leave
	}
	turn := make(chan struct{})
	k.waiting = append(k.waiting, turn)
	k.mu.Unlock()
	_ = k.exec.Await(context.Background(), turn) // a sync ends by itself
	return k.leave
}

// leave gives the place to the one that waits longest.
func (k *Keeper) leave() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.waiting) == 0 {
		k.busy--
		return
	}
	close(k.waiting[0])
	k.waiting = k.waiting[1:]
}
