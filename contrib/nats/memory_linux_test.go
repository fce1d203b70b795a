package troupenats

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Servers sync each write, and no test takes the power away. The proofs of TROUPE_FULL are on a disk.
var _ = func() bool {
	inMemory = func() (end func()) {
		const shared, room = "/dev/shm", 2 << 30
		const prefix = shared + "/troupe-nats-"
		left, _ := filepath.Glob(prefix + "*")
		for _, dir := range left { // of a test that was killed
			if _, err := os.Stat("/proc/" + strings.TrimPrefix(dir, prefix)); os.IsNotExist(err) {
				_ = os.RemoveAll(dir)
			}
		}
		end = func() {}
		var fs syscall.Statfs_t
		if os.Getenv("TROUPE_FULL") != "" || os.Getenv("TMPDIR") != "" || syscall.Statfs(shared, &fs) != nil || fs.Bavail*uint64(fs.Bsize) < room {
			return end
		}
		dir := fmt.Sprint(prefix, os.Getpid())
		if os.Mkdir(dir, 0o700) != nil || os.Setenv("TMPDIR", dir) != nil {
			return end
		}
		return func() { _ = os.RemoveAll(dir) }
	}
	return true
}()
