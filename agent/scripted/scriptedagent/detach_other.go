//go:build !unix

package main

import "os/exec"

// detach does nothing: there are no sessions.
func detach(*exec.Cmd, bool) {}
