//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// detach starts the child in its own process session, if session is set.
func detach(cmd *exec.Cmd, session bool) {
	if session {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
}
