package osproc

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Untested. The tree is walked by parent and group, from a snapshot that is taken each
// time the group is signalled, since orphans lose their parent. A process that was
// orphaned earlier, in its own session, escapes.

// zombie is SZOMB of <sys/proc.h>.
const zombie = 5

// leader remembers the tree under it.
type leader struct{ tree map[procKey]bool }

// exited looks at the leader without collecting it.
func (l *leader) exited(pid int) bool {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	return err != nil || k.Proc.P_stat == zombie
}

func (l *leader) signalGroup(pid int, sig Signal) error {
	l.remember(pid)
	err := killGroup(pid, sig)
	if errors.Is(err, unix.EPERM) && l.exited(pid) {
		return nil // only a zombie is left in the group
	}
	return err
}

func (l *leader) remember(pid int) {
	all, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return
	}
	if l.tree == nil {
		l.tree = make(map[procKey]bool)
	}
	l.grow(pid, all)
}

// grow adds to the tree every live process that is in the group, or whose
// parent is in the tree, until none is left out.
func (l *leader) grow(pid int, all []unix.KinfoProc) {
	pids := map[int]bool{pid: true}
	for _, k := range all {
		if l.tree[keyOf(k)] {
			pids[int(k.Proc.P_pid)] = true
		}
	}
	for grown := true; grown; {
		grown = false
		for _, k := range all {
			in := pids[int(k.Eproc.Ppid)] || int(k.Eproc.Pgid) == pid
			if in && !l.tree[keyOf(k)] && int(k.Proc.P_pid) != os.Getpid() {
				l.tree[keyOf(k)] = true
				pids[int(k.Proc.P_pid)] = true
				grown = true
			}
		}
	}
}

func (l *leader) collect(pid int) (ExitStatus, error) { return wait4(pid) }

func (l *leader) close() {}

// sysctlTable is Darwin's process table.
type sysctlTable struct{}

func newTable(func(int) bool, func(int) []string) table { return sysctlTable{} }

func (t sysctlTable) scan(w *wanted, found func(*sweepJob, member)) (bool, error) {
	all, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return false, err
	}
	//troupe:maporder each job is looked after for itself
	for _, jobs := range w.groups {
		for _, j := range jobs {
			tree := make(map[procKey]bool)
			j.proc.holdingGroup(func() {
				l := &j.proc.leader
				l.remember(j.proc.pid)
				for key := range l.tree {
					tree[key] = true
				}
			})
			for _, k := range all {
				if tree[keyOf(k)] && k.Proc.P_stat != zombie {
					found(j, memberOf(k, j))
				}
			}
		}
	}
	return true, nil
}

func (t sysctlTable) member(j *sweepJob, pid int) (m member, ok bool) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || j.proc == nil {
		return member{}, false
	}
	j.proc.holdingGroup(func() { ok = j.proc.leader.tree[keyOf(*k)] })
	return memberOf(*k, j), ok
}

// kill has no pidfd to pin the process: one recycled between the two calls
// would be hit.
func (t sysctlTable) kill(j *sweepJob, m member) error {
	if t.gone(m) {
		return nil
	}
	if err := unix.Kill(m.PID, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}

func (sysctlTable) since(int) uint64 { return 0 }

func (sysctlTable) remember() {}

// gone implements [table].
func (t sysctlTable) gone(m member) bool {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", m.PID)
	return err != nil || k.Proc.P_stat == zombie || keyOf(*k) != m.key()
}

func keyOf(k unix.KinfoProc) procKey {
	at := k.Proc.P_starttime
	return procKey{pid: int(k.Proc.P_pid), start: uint64(at.Sec)*1e6 + uint64(at.Usec)}
}

func memberOf(k unix.KinfoProc, j *sweepJob) member {
	return member{
		ProcInfo: ProcInfo{
			PID: int(k.Proc.P_pid), PPID: int(k.Eproc.Ppid), Group: int(k.Eproc.Pgid),
			Name: unix.ByteSliceToString(k.Proc.P_comm[:]),
		},
		start:   keyOf(k).start,
		inGroup: j.proc != nil && int(k.Eproc.Pgid) == j.proc.pid,
	}
}
