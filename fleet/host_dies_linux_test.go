package fleet_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/agent-troupe/troupe/fleet/journal"
)

// dyingEnv makes a host kill itself: at which instant, and at which of those, from 1.
const dyingEnv = "TROUPE_FLEET_TEST_DYING"

// Instants at which a host dies.
const (
	duringWrite  = "during-a-write"  // the journal has a part of the bytes
	beforeSync   = "before-a-sync"   // the journal has all of them, and they are not durable
	beforeRecord = "before-a-record" // a transcript is durable, and no record names it
)

// dying returns the directory of a host, which kills itself there if dyingEnv says so.
func dying(dir journal.FS) journal.FS {
	d := &dyingDir{FS: dir}
	var left int64
	if _, err := fmt.Sscan(os.Getenv(dyingEnv), &d.instant, &left); err != nil {
		return dir
	}
	d.left.Store(left)
	return d
}

type dyingDir struct {
	journal.FS
	instant string
	left    atomic.Int64
}

// now reports whether the host dies at this instant.
func (d *dyingDir) now(instant string) bool { return d.instant == instant && d.left.Add(-1) == 0 }

func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

func (d *dyingDir) Create(name string) (journal.File, error) {
	f, err := d.FS.Create(name)
	return d.journal(name, f, err)
}

func (d *dyingDir) Append(name string, size int64) (journal.File, error) {
	f, err := d.FS.Append(name, size)
	return d.journal(name, f, err)
}

// journal wraps the file of the journal, which has another name while it is made.
func (d *dyingDir) journal(name string, f journal.File, err error) (journal.File, error) {
	if err == nil && strings.HasPrefix(name, "journal.") {
		f = &dyingFile{f, d}
	}
	return f, err
}

func (d *dyingDir) SyncDir(name string) error {
	err := d.FS.SyncDir(name)
	if err == nil && name == "transcripts" && d.now(beforeRecord) {
		die()
	}
	return err
}

type dyingFile struct {
	journal.File
	dir *dyingDir
}

func (f *dyingFile) Write(p []byte) (int, error) {
	if f.dir.now(duringWrite) {
		_, _ = f.File.Write(p[:1+rand.IntN(len(p)-1)])
		die()
	}
	n, err := f.File.Write(p)
	if f.dir.now(beforeSync) {
		die()
	}
	return n, err
}
