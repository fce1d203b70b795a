package osproc

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// argsLimit is how much of a process's arguments a ProcInfo shows.
const argsLimit = 4096

// Flags of /proc/<pid>/stat.
const (
	flagExiting = 0x00000004
	flagKernel  = 0x00200000
)

// procfs is Linux's process table.
type procfs struct {
	self    int
	leads   func(pid int) bool       // whether a pid is a leader that Reap will collect
	carried func(pid int) []string   // the markers that such a leader was started with; nil for other processes
	list    func() ([]procID, error) // all processes, by pid; valid until the next call
	last    func() string            // the pid that was given last; empty: not known
	ids     []procID                 // what list has returned
	seen    []*seenProc              // of the last list, by pid
	born    string                   // what last returned before the last list; empty: list again
	first   string                   // what last returned before the first launch
	scans   int
	buf     []byte // of the last read
}

func newTable(leads func(int) bool, carried func(int) []string) table {
	t := &procfs{self: os.Getpid(), leads: leads, carried: carried, buf: make([]byte, 16<<10)}
	t.list, t.last = t.listProcs, t.lastPID
	return t
}

// verdict is what a scan could find out about one process.
type verdict int

const (
	judged   verdict = iota // it is a member, or not
	vanished                // it has ended; whatever it forked meanwhile is not in the list
	unclear                 // it cannot be judged now
)

// maxChase bounds the listings of one scan.
const maxChase = 64

// scan implements [table]. A list of processes is old when its end is reached:
// one that forked and exited meanwhile is gone, and its child is not in the
// list. So when any was gone, the list is made again and its newcomers, few
// and therefore quickly done, are judged in turn.
func (t *procfs) scan(w *wanted, found func(*sweepJob, member)) (bool, error) {
	t.scans++
	if w.fresh {
		t.born = "" // the last list is not of this sweep
	}
	settled := true
	for range maxChase {
		if err := t.relist(); err != nil {
			return false, err
		}
		chase := false
		for _, p := range t.seen {
			if p.scan == t.scans || p.pid == t.self {
				continue
			}
			p.scan = t.scans
			switch t.look(p, w, found) {
			case vanished:
				chase = true
			case unclear:
				settled = false
			case judged:
			}
		}
		if !chase {
			return settled, nil
		}
	}
	return false, nil
}

// look judges one process, and reports it to the jobs that it belongs to.
func (t *procfs) look(p *seenProc, w *wanted, found func(*sweepJob, member)) verdict {
	if !p.met {
		if names := t.carried(p.pid); names != nil && len(w.groups[p.pid]) == 0 && len(w.carriedBy(names)) == 0 {
			return judged // a leader of another launch; nothing of it need be read
		}
		if v := t.meet(p); v != judged {
			return p.ends(v)
		}
	}
	if p.start < w.since {
		return judged // older than the leaders: it descends from none of them
	}
	group, err := unix.Getpgid(p.pid)
	switch {
	case err != nil && p.foreign():
		return judged // gone, and no child of it is wanted
	case err != nil:
		return p.ends(failed(err))
	case group == 0:
		// A kernel thread, or of a group from outside our pid namespace: no
		// descendant of ours is either.
		return judged
	}
	jobs, inGroup := w.groups[group], true
	if len(jobs) == 0 {
		inGroup = false
		if v := t.readMarkers(p, w); v != judged {
			return p.ends(v)
		}
		if jobs = w.carriedBy(p.markers); len(jobs) == 0 {
			return judged
		}
	}
	st, err := t.stat(p.pid)
	if err != nil {
		return p.ends(failed(err))
	}
	if st.dead() {
		t.collect(p.pid, st)
		p.ended = p.ended || w.exited[p.pid] // all its children are in this list
		return p.ends(vanished)
	}
	m := t.describe(p.pid, st, inGroup)
	for _, j := range jobs {
		found(j, m)
	}
	return judged
}

// failed distinguishes the end of a process, and missing permissions, from failures of
// this process such as too many open files.
func failed(err error) verdict {
	switch {
	case isGone(err):
		return vanished
	case errors.Is(err, fs.ErrPermission):
		return judged
	}
	return unclear
}

// carriedBy returns the jobs of the markers.
func (w *wanted) carriedBy(markers []string) (jobs []*sweepJob) {
	for _, name := range markers {
		jobs = append(jobs, w.markers[name]...)
	}
	return jobs
}

// eachMarker calls fn with the name of each launch marker in an environment.
func eachMarker(env []byte, fn func(name []byte)) {
	prefix := []byte(markerPrefix)
	for at := 0; ; {
		i := bytes.Index(env[at:], prefix)
		if i < 0 {
			return
		}
		start := at + i
		at = start + len(prefix)
		if start > 0 && env[start-1] != 0 {
			continue // inside some other variable
		}
		entry, _, _ := bytes.Cut(env[start:], []byte{0})
		if name, _, ok := bytes.Cut(entry, []byte{'='}); ok {
			fn(name)
		}
	}
}

// environ returns a process's environment; empty without one, or without the permission
// to see it. In the middle of exec a process seems to have an empty environment, and a
// scan would miss it: the verdict is unclear then.
func (t *procfs) environ(pid int) ([]byte, verdict) {
	path := "/proc/" + strconv.Itoa(pid) + "/environ"
	env, err := t.read(path)
	if len(env) > 0 {
		return env, judged
	}
	if err != nil && !isGone(err) {
		return nil, failed(err)
	}
	st, err := t.stat(pid) // the kernel says "empty" or "gone" of a main thread without memory
	switch {
	case err != nil:
		return nil, failed(err)
	case st.flags&flagKernel != 0:
		return nil, judged
	case st.dead():
		return nil, vanished
	case st.state == 'Z': // only the main thread has ended
		return t.threadEnviron(pid), judged
	case st.flags&flagExiting != 0:
		return nil, vanished
	case st.envEnd == 0:
		return nil, unclear
	}
	if env, err = t.read(path); err != nil {
		return nil, failed(err)
	}
	return env, judged
}

func (t *procfs) threadEnviron(pid int) []byte {
	threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, th := range threads {
		if env, err := t.read(fmt.Sprintf("/proc/%d/task/%s/environ", pid, th.Name())); err == nil && len(env) > 0 {
			return env
		}
	}
	return nil
}

// member implements [table].
func (t *procfs) member(j *sweepJob, pid int) (member, bool) {
	if pid <= 1 || pid == t.self || !t.carries(j, pid) {
		return member{}, false
	}
	st, err := t.stat(pid)
	if err != nil || st.dead() {
		return member{}, false
	}
	return t.describe(pid, st, j.proc != nil && st.group == j.proc.Group()), true
}

func (t *procfs) carries(j *sweepJob, pid int) (yes bool) {
	env, _ := t.environ(pid)
	eachMarker(env, func(name []byte) { yes = yes || string(name) == j.marker })
	return yes
}

// since implements [table].
func (t *procfs) since(pid int) uint64 {
	st, err := t.stat(pid)
	if err != nil {
		return 0
	}
	return st.start
}

// kill implements [table]. The pidfd pins one process; what was seen is looked
// at again behind it, so that a recycled pid is never signalled.
func (t *procfs) kill(j *sweepJob, m member) error {
	fd, err := unix.PidfdOpen(m.PID, 0)
	switch {
	case errors.Is(err, unix.ESRCH):
		return nil
	case errors.Is(err, unix.ENOSYS):
		return t.killByPID(m)
	case err != nil:
		return fmt.Errorf("pidfd_open: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	send := func() {
		if err = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); errors.Is(err, unix.ESRCH) {
			err = nil
		}
	}
	switch {
	case !m.inGroup:
		if t.carries(j, m.PID) {
			send()
		}
	default:
		j.proc.holdingGroup(func() {
			if group, e := unix.Getpgid(m.PID); e == nil && group == j.proc.Group() {
				send()
			}
		})
	}
	return err
}

// killByPID is for kernels without pidfd (before 5.3): a pid recycled between
// the two calls would be hit.
func (t *procfs) killByPID(m member) error {
	if st, err := t.stat(m.PID); err != nil || st.start != m.start {
		return nil //nolint:nilerr // what is gone needs no signal
	}
	if err := unix.Kill(m.PID, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}

// gone implements [table].
func (t *procfs) gone(m member) bool {
	st, err := t.stat(m.PID)
	if err != nil {
		return isGone(err)
	}
	if st.start != m.start {
		return true
	}
	if st.dead() {
		t.collect(m.PID, st)
	}
	return st.dead()
}

// collect reaps a dead orphan of the launch that this host has adopted, as a
// container's pid 1 or a subreaper does. Leaders are left to Reap. An orphan from
// outside the group that died before any scan saw it has nothing left to be
// known by, and is for the host's own init to collect.
func (t *procfs) collect(pid int, st procStat) {
	if st.parent != t.self || t.leads(pid) {
		return
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(fd) }()
	if again, err := t.stat(pid); err == nil && again.start == st.start {
		_ = unix.Waitid(unix.P_PIDFD, fd, nil, unix.WEXITED|unix.WNOHANG, nil)
	}
}

func (t *procfs) describe(pid int, st procStat, inGroup bool) member {
	m := member{start: st.start, inGroup: inGroup}
	m.ProcInfo = ProcInfo{PID: pid, PPID: st.parent, Group: st.group, Name: st.name}
	if line, err := t.read("/proc/" + strconv.Itoa(pid) + "/cmdline"); err == nil && len(line) > 0 {
		line = line[:min(len(line), argsLimit)]
		for _, arg := range bytes.Split(bytes.TrimSuffix(line, []byte{0}), []byte{0}) {
			m.Args = append(m.Args, string(arg))
		}
	}
	return m
}

// procStat is what is needed of /proc/<pid>/stat.
type procStat struct {
	name    string
	state   byte
	parent  int
	group   int
	flags   uint64
	threads int
	start   uint64 // clock ticks since boot
	envEnd  uint64 // address; 0 until exec has set the environment up
}

// dead reports whether all threads have ended.
func (s procStat) dead() bool { return (s.state == 'Z' || s.state == 'X') && s.threads <= 1 }

func (t *procfs) stat(pid int) (procStat, error) {
	line, err := t.read("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return procStat{}, err
	}
	return parseStat(line)
}

// parseStat reads a line of /proc/<pid>/stat. The name is in parentheses and
// may hold any byte, parentheses and spaces too.
func parseStat(line []byte) (procStat, error) {
	from, to := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if from < 0 || to < from {
		return procStat{}, fmt.Errorf("osproc: malformed stat line %q", line)
	}
	var f [49][]byte // f[0] is field 3 of proc_pid_stat(5)
	n := 0
	for field := range bytes.FieldsSeq(line[to+1:]) {
		if n == len(f) {
			break
		}
		f[n], n = field, n+1
	}
	if n < len(f) || len(f[0]) != 1 {
		return procStat{}, fmt.Errorf("osproc: short stat line %q", line)
	}
	num := func(field int) uint64 {
		n, _ := strconv.ParseUint(string(f[field-3]), 10, 64)
		return n
	}
	return procStat{
		name:    string(line[from+1 : to]),
		state:   f[0][0],
		parent:  int(num(4)),
		group:   int(num(5)),
		flags:   num(9),
		threads: int(num(20)),
		start:   num(22),
		envEnd:  num(51),
	}, nil
}

// read reads a whole file of /proc, valid until the next read. Plain system
// calls: a scan opens thousands, and os.File would offer each to the poller.
func (t *procfs) read(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	for n := 0; ; {
		if n == len(t.buf) {
			t.buf = append(t.buf, make([]byte, len(t.buf))...)
		}
		got, err := unix.Read(fd, t.buf[n:])
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return nil, err
		case got == 0:
			return t.buf[:n], nil
		default:
			n += got
		}
	}
}

func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) }
