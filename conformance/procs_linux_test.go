//go:build conformance

package conformance_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// process is one that was found in the table of processes.
type process struct {
	pid  int
	args string
}

func (p process) String() string { return fmt.Sprintf("%d %s", p.pid, p.args) }

func (p process) kill() {
	if it, err := os.FindProcess(p.pid); err == nil {
		_ = it.Kill()
	}
}

// processesNaming lists the processes that have a token in their arguments, or
// work in a directory that has it in its name.
func processesNaming(token string) []process {
	var found []process
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		raw, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || len(raw) == 0 || pid == os.Getpid() {
			continue // gone, or a kernel thread, or a zombie
		}
		args := strings.TrimRight(strings.ReplaceAll(string(raw), "\x00", " "), " ")
		cwd, _ := os.Readlink(filepath.Join(dir, "cwd"))
		if strings.Contains(args, token) || strings.HasPrefix(cwd, token) {
			found = append(found, process{pid, args})
		}
	}
	return found
}
