package measure

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// Holding is what this process has at a moment.
type Holding struct {
	RSS, Heap                                float64 // MiB
	Goroutines, Descriptors, Files, Children int
}

// Holds reads it once the collector has settled. Files are those in dir. Descriptors and
// children are known on Linux only.
func Holds(dir string) Holding {
	Settle()
	h := Holding{RSS: MB(RSS()), Heap: MB(Heap()), Goroutines: runtime.NumGoroutine(), Children: len(Children())}
	fds, _ := filepath.Glob("/proc/self/fd/*")
	files, _ := os.ReadDir(dir)
	h.Descriptors, h.Files = len(fds), len(files)
	return h
}

// Children are the process ids of this process's children, those that wait to be reaped
// included.
func Children() []int {
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	var all []int
	for _, list := range lists {
		pids, _ := os.ReadFile(list) // a thread that is gone has no children
		for pid := range strings.FieldsSeq(string(pids)) {
			if n, err := strconv.Atoi(pid); err == nil {
				all = append(all, n)
			}
		}
	}
	return all
}
