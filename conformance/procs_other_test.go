//go:build conformance && !linux

package conformance_test

import (
	"fmt"
	"os"
	"os/exec"
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

// processesNaming lists the processes that have a token in their arguments.
func processesNaming(token string) []process {
	out, err := exec.Command("ps", "-axww", "-o", "pid=,args=").Output()
	if err != nil {
		panic(err)
	}
	var found []process
	for line := range strings.Lines(string(out)) {
		id, args, _ := strings.Cut(strings.TrimSpace(line), " ")
		if pid, err := strconv.Atoi(id); err == nil && pid != os.Getpid() && strings.Contains(args, token) {
			found = append(found, process{pid, args})
		}
	}
	return found
}
