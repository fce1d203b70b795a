//go:build !linux

package durable

import "os"

// SyncData makes the content and the length of a file durable, not its times.
func SyncData(f *os.File) error { return f.Sync() }
