//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// detach gives the child a session of its own, if it shall have one.
func detach(cmd *exec.Cmd, session bool) {
	if session {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
}
