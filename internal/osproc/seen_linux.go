package osproc

import (
	"encoding/binary"
	"errors"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// procID names one process for good: the inode of its directory in /proc is
// made with the process and its number is not given again while the list that
// it is in is the last one.
type procID struct {
	pid   int
	inode uint64
}

// seenProc is what scans remember of a process, so that the next need not read
// it again: reading the environment of a process takes ten times as long as
// listing it.
type seenProc struct {
	procID
	scan    int // the last that looked at it
	met     bool
	start   uint64 // start time, in clock ticks since boot
	ended   bool   // it was seen dead or gone, and all its children are in later lists
	read    bool   // markers is valid
	leader  bool   // it was a started leader when markers was read
	markers []string
}

// foreign reports whether the process was seen to carry no marker at all.
func (p *seenProc) foreign() bool { return p.read && len(p.markers) == 0 }

// ends returns v, which is not news if the process was seen dead before.
func (p *seenProc) ends(v verdict) verdict {
	if v != vanished {
		return v
	}
	if p.ended {
		return judged
	}
	p.ended = true
	return vanished
}

// relist replaces t.seen by what there is now. It does nothing if no process was
// born since the last list was begun: the list then has all that live, and to make
// it takes the kernel more than a microsecond for each process of the host.
func (t *procfs) relist() error {
	born := t.last()
	if t.first == "" || born == t.first {
		born = "" // only what has changed with the first launch can be relied on
	}
	if born != "" && born == t.born {
		return nil
	}
	ids, err := t.list()
	if err != nil {
		return err
	}
	now, before := make([]*seenProc, len(ids)), t.seen
	for i, id := range ids {
		for len(before) > 0 && before[0].pid < id.pid {
			before = before[1:]
		}
		if len(before) > 0 && before[0].procID == id {
			now[i] = before[0]
		} else {
			now[i] = &seenProc{procID: id}
		}
	}
	t.seen, t.born = now, born
	return nil
}

// lastPID is the pid that was given last in this pid namespace, whose descendants'
// processes have one in it, too. Every new process and thread has another.
func (t *procfs) lastPID() string {
	pid, err := t.read("/proc/sys/kernel/ns_last_pid")
	if err != nil {
		return "" // a kernel without checkpoints has no such file
	}
	return string(pid)
}

// remember implements [table]. A start of 0 is older than any leader's.
func (t *procfs) remember() {
	if t.relist() != nil {
		return
	}
	for _, p := range t.seen {
		p.met = true
	}
	t.first = t.last()
}

// meet finds out what does not change while a process lives.
func (t *procfs) meet(p *seenProc) verdict {
	st, err := t.stat(p.pid)
	if err != nil {
		return failed(err)
	}
	p.met, p.start = true, st.start
	return judged
}

// readMarkers reads the process's environment, unless the known markers are enough: a
// process gets its markers only from its parent. The exceptions are a leader, which had
// the host's environment until its program was executed, and a wanted process, which
// may have dropped its marker.
func (t *procfs) readMarkers(p *seenProc, w *wanted) verdict {
	leads := t.leads(p.pid)
	if p.ended || p.read && (p.leader || !leads) && len(w.carriedBy(p.markers)) == 0 {
		return judged
	}
	env, v := t.environ(p.pid)
	if v != judged {
		return v
	}
	p.read, p.leader, p.markers = len(env) > 0, leads, nil
	eachMarker(env, func(name []byte) { p.markers = append(p.markers, string(name)) })
	return judged
}

// direntName is where the name begins in a linux_dirent64.
const direntName = 19

// listProcs returns all processes, by pid. The entries are read here because
// package os hides their inodes.
func (t *procfs) listProcs() ([]procID, error) {
	fd, err := unix.Open("/proc", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	for ids := t.ids[:0]; ; {
		n, err := unix.Getdents(fd, t.buf)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, err
		case n == 0:
			slices.SortFunc(ids, func(a, b procID) int { return a.pid - b.pid })
			t.ids = ids
			return ids, nil
		}
		ids = appendProcs(ids, t.buf[:n])
	}
}

// appendProcs appends the processes of what getdents64 has returned.
func appendProcs(ids []procID, entries []byte) []procID {
	for len(entries) > direntName {
		size := int(binary.NativeEndian.Uint16(entries[16:]))
		if size <= direntName || size > len(entries) {
			return ids
		}
		name, inode := unix.ByteSliceToString(entries[direntName:size]), binary.NativeEndian.Uint64(entries)
		entries = entries[size:]
		if name == "" || name[0] < '0' || name[0] > '9' {
			continue // Atoi would make an error for each
		}
		if pid, err := strconv.Atoi(name); err == nil {
			ids = append(ids, procID{pid, inode})
		}
	}
	return ids
}
