package runtime

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// canMeasure says that [measure] works on this system.
const canMeasure = true

// measure returns the memory of all processes under this one, and the free disk of dir.
// A value that cannot be read counts as zero.
func measure(dir string) (m HostUsage) {
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
	self := os.Getpid()
	for pid := range parents { //troupe:maporder it is a sum
		for up, steps := parents[pid], 0; up > 0 && steps < len(parents); up, steps = parents[up], steps+1 {
			if up == self {
				m.Memory += pages[pid] * int64(os.Getpagesize())
				break
			}
		}
	}
	if dir == "" {
		dir = "."
	}
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) == nil {
		m.FreeDisk = int64(st.Bavail) * st.Bsize
	}
	return m
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
