package fleet

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncFiles makes all files of the file system of dir durable: one call for the many files
// of a cache.
func syncFiles(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(os.NewSyscallError("syncfs", unix.Syncfs(int(f.Fd()))), f.Close())
}
