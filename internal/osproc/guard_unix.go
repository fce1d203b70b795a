//go:build unix

package osproc

import "syscall"

// ownSession keeps a process from the signals of the host's terminal.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
