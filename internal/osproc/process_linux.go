package osproc

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// leader is the system's side of a started leader. The zero value is of a
// process that never started.
type leader struct {
	pidfd int
	hasFD bool
}

// spawn forks and executes. It must run on the launching thread. syscall.ForkExec and
// not os.StartProcess: the latter keeps its own pidfd and handle, and waits in a
// thread.
func (p *Process) spawn(n *launch) error {
	fd := -1
	attr := &syscall.ProcAttr{
		Dir:   n.dir,
		Env:   n.env,
		Files: n.files(),
		Sys: &syscall.SysProcAttr{
			Setpgid:   true,
			Pdeathsig: n.death,
			PidFD:     &fd,
		},
	}
	if p.launcher.noPidfd {
		attr.Sys.PidFD = nil
	}
	pid, err := syscall.ForkExec(n.path, n.argv, attr)
	if errors.Is(err, syscall.EINVAL) { // a sandbox that refuses CLONE_PIDFD
		attr.Sys.PidFD = nil
		pid, err = syscall.ForkExec(n.path, n.argv, attr)
	}
	if err != nil {
		return err
	}
	p.pid = pid
	if fd < 0 {
		return nil
	}
	p.leader = leader{pidfd: fd, hasFD: true}
	if errors.Is(unix.PidfdSendSignal(fd, 0, nil, 0), unix.ENOSYS) {
		p.leader.close()
	}
	return nil
}

// exited looks at the leader without collecting it.
func (l *leader) exited(pid int) bool {
	var info unix.Siginfo
	idType, id := unix.P_PID, pid
	if l.hasFD {
		idType, id = unix.P_PIDFD, l.pidfd
	}
	err := unix.Waitid(idType, id, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return errors.Is(err, unix.ECHILD) || err == nil && info.Signo != 0
}

// signalGroup signals the group. The caller knows that we did not reap the leader; the
// pidfd shows whether another part of this program did.
func (l *leader) signalGroup(pid int, sig Signal) error {
	if l.hasFD && errors.Is(unix.PidfdSendSignal(l.pidfd, 0, nil, 0), unix.ESRCH) {
		return ErrExited
	}
	if group, err := unix.Getpgid(pid); err == nil && group != pid {
		_ = unix.Kill(pid, sig) // the leader has left its group, and gets only signals to itself
	}
	return killGroup(pid, sig)
}

func (l *leader) collect(pid int) (ExitStatus, error) { return wait4(pid) }

func (l *leader) close() {
	if l.hasFD {
		_ = unix.Close(l.pidfd)
		*l = leader{}
	}
}
