//go:build unix && !linux

package osproc

import "syscall"

// spawn forks and executes. There is no Pdeathsig here: a host that dies by
// SIGKILL leaves its agents behind.
func (p *Process) spawn(n *launch) error {
	pid, err := syscall.ForkExec(n.path, n.argv, &syscall.ProcAttr{
		Dir:   n.dir,
		Env:   n.env,
		Files: n.files(),
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		return err
	}
	p.pid = pid
	return nil
}
