package runtime

import (
	"bytes"
	"cmp"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// canMeasure says that [measure] works on this system.
const canMeasure = true

// measure returns the memory of all processes under this one, and the free disk of dir.
// A value that cannot be read counts as zero.
func measure(dir string) (m HostUsage) {
	self := os.Getpid()
	under(func(pid int) bool { return pid == self }, func(pid, _ int, memory int64) {
		if pid != self {
			m.Memory += memory
		}
	})
	dir = cmp.Or(dir, ".")
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) == nil {
		m.FreeDisk = int64(st.Bavail) * st.Bsize
	}
	return m
}

// measureTrees adds, for each process of the map, the memory of it and of all under it.
func measureTrees(roots map[int]int64) {
	isRoot := func(pid int) bool { _, ok := roots[pid]; return ok }
	under(isRoot, func(_, root int, memory int64) { roots[root] += memory })
}

// under calls found for each process that is a root, or below one, with the nearest root and the
// bytes that the process has in memory.
func under(isRoot func(pid int) bool, found func(pid, root int, memory int64)) {
	parents, pages := map[int]int{}, map[int]int64{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		line, _ := os.ReadFile("/proc/" + e.Name() + "/stat") // it may have ended
		if parent, rss, ok := parentOf(line); ok {
			parents[pid], pages[pid] = parent, rss
		}
	}
	for pid := range parents { //troupe:maporder it is a sum
		for up, steps := pid, 0; up > 0 && steps <= len(parents); up, steps = parents[up], steps+1 {
			if isRoot(up) {
				found(pid, up, pages[pid]*int64(os.Getpagesize()))
				break
			}
		}
	}
}

// parentOf reads the parent and the pages in memory from /proc/<pid>/stat: the fields 4 and
// 24 of proc_pid_stat(5). The name, field 2, is in parentheses and may hold anything.
func parentOf(stat []byte) (parent int, pages int64, ok bool) {
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return 0, 0, false
	}
	fields := bytes.Fields(stat[end+1:]) // from field 3 on
	if len(fields) < 22 {
		return 0, 0, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	pages, wrong := strconv.ParseInt(string(fields[21]), 10, 64)
	return parent, pages, err == nil && wrong == nil
}
