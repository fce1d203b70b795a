// Package userproc makes a process of a user's spawner safe to drive: its methods may panic, and
// the host must not end with that.
//
// In this package: the guard around a session.Process. Not in this package: how a process is
// started, read or ended.
package userproc
