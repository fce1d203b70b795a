//go:build linux || darwin

package command

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// processLimits are how many files this process may have open, and how many processes its user
// may have; 0: no limit, or it is not known.
func processLimits() (files, processes uint64) {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) == nil && l.Cur != unix.RLIM_INFINITY {
		files = l.Cur
	}
	if unix.Getrlimit(unix.RLIMIT_NPROC, &l) == nil && l.Cur != unix.RLIM_INFINITY {
		processes = l.Cur
	}
	return files, processes
}

// freeDisk is how many bytes this user can write to the disk of a directory, and which disk it is.
func freeDisk(dir string) (free uint64, disk string, known bool) {
	var st unix.Statfs_t
	var file unix.Stat_t
	if unix.Statfs(dir, &st) != nil || unix.Stat(dir, &file) != nil {
		return 0, "", false
	}
	return st.Bavail * uint64(st.Bsize), strconv.FormatUint(uint64(file.Dev), 10), true //nolint:unconvert // their types differ by system
}
