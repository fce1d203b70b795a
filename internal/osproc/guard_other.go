//go:build !unix

package osproc

import "syscall"

func ownSession() *syscall.SysProcAttr { return nil }
