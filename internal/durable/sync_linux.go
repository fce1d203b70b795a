package durable

import (
	"errors"
	"os"
	"syscall"
)

// SyncData makes the content and the length of a file durable, not its times.
func SyncData(f *os.File) error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
