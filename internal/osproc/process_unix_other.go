//go:build unix && !linux && !darwin

package osproc

import "errors"

// Untested. Only the process group is owned here. There is no portable look at
// an exited child that leaves it uncollected, so the leader is collected when
// its exit is seen, and the group killed at once; nothing is signalled after.

type leader struct {
	collected bool
	status    ExitStatus
	err       error
}

func (l *leader) exited(pid int) bool {
	if l.collected {
		return true
	}
	st, err := wait4(pid)
	if errors.Is(err, ErrRunning) {
		return false
	}
	_ = killGroup(pid, Signal(9))
	l.collected, l.status, l.err = true, st, err
	return true
}

func (l *leader) signalGroup(pid int, sig Signal) error {
	if l.collected {
		return ErrExited
	}
	return killGroup(pid, sig)
}

func (l *leader) collect(pid int) (ExitStatus, error) {
	l.exited(pid)
	return l.status, l.err
}

func (l *leader) close() {}

// noTable finds nothing: a sweep kills the group, and that is all.
type noTable struct{}

func newTable(func(int) bool, func(int) []string) table { return noTable{} }

func (noTable) scan(*wanted, func(*sweepJob, member)) (bool, error) { return true, nil }
func (noTable) member(*sweepJob, int) (member, bool)                { return member{}, false }
func (noTable) kill(*sweepJob, member) error                        { return nil }
func (noTable) gone(member) bool                                    { return true }
func (noTable) since(int) uint64                                    { return 0 }
func (noTable) remember()                                           {}
