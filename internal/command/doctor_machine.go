package command

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/agent-troupe/troupe/internal/confine"
)

// checkSandbox says whether the embedded agent's commands can be confined.
func checkSandbox(context.Context, *examined) []finding {
	if err := confine.Available(); err != nil {
		return []finding{remark("the embedded agent's commands cannot be confined: "+err.Error(), "run the agent in a container if that matters")}
	}
	return []finding{ok("Landlock: the embedded agent's commands can be confined")}
}

// checkProcesses says whether all processes of an agent can be found and ended.
func checkProcesses(context.Context, *examined) (found []finding) {
	if os.Getpid() == 1 {
		found = append(found, remark("troupe is process 1, and inherits the orphans of agents", "start the container with an init: docker run --init"))
	}
	if runtime.GOOS != "linux" {
		return append(found, remark("on "+runtime.GOOS+" a process that leaves its group may survive its agent", "use Linux for jobs that run unattended"))
	}
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		return append(found, wrong("there is no /proc: processes that leave their group survive their agent", "mount it"))
	}
	return append(found, ok("all processes of an agent are found and ended"))
}

// Rough needs of an agent that is a process, with its commands.
const (
	filesOfAgent     = 8
	processesOfAgent = 32
	memoryOfAgent    = 512 << 20
	leastAgents      = 4 // as many as troupe batch runs at the same time
)

// checkLimits says how many agents the limits of this process and its control group leave room for.
func checkLimits(_ context.Context, _ *examined) (found []finding) {
	judge := func(what string, limit, of uint64, raise string) {
		text := fmt.Sprintf("%s: %d, enough for about %d agents at a time", what, limit, limit/of)
		if limit/of < leastAgents {
			found = append(found, wrong(text, raise))
			return
		}
		found = append(found, ok("%s", text))
	}
	files, processes := processLimits()
	if files > 0 {
		judge("open files", files, filesOfAgent, "raise it: ulimit -n 65536")
	}
	if processes > 0 {
		judge("processes of this user", processes, processesOfAgent, "raise it: ulimit -u 65536")
	}
	for _, l := range groupLimits("/proc/self/cgroup", "/sys/fs/cgroup") {
		switch l.file {
		case "memory.max":
			agents := l.value / memoryOfAgent
			text := fmt.Sprintf("memory of the control group: %d MiB, enough for about %d agents at a time", l.value>>20, agents)
			if agents < leastAgents {
				found = append(found, remark(text, "raise it, or run fewer tasks at a time (--concurrency)"))
				continue
			}
			found = append(found, ok("%s", text))
		case "pids.max":
			judge("processes of the control group", l.value, processesOfAgent, "raise pids.max")
		}
	}
	return append(found, ok("%d processors", runtime.NumCPU()))
}

// groupLimit is a limit of the control group or of one that it is in.
type groupLimit struct {
	file  string
	value uint64
}

// groupLimits are the lowest limits of this process's control group (version 2) and of those above it.
func groupLimits(self, root string) (found []groupLimit) {
	raw, err := os.ReadFile(self)
	if err != nil {
		return nil
	}
	group := ""
	for line := range strings.Lines(string(raw)) {
		if path, ok := strings.CutPrefix(line, "0::"); ok {
			group = filepath.Clean("/" + strings.TrimSpace(path))
		}
	}
	if group == "" {
		return nil
	}
	for _, file := range []string{"memory.max", "pids.max"} {
		least := uint64(0)
		for at := group; ; at = filepath.Dir(at) {
			if text, err := os.ReadFile(filepath.Join(root, at, file)); err == nil {
				if n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil && (least == 0 || n < least) { // else it is max
					least = n
				}
			}
			if at == "/" {
				break
			}
		}
		if least > 0 {
			found = append(found, groupLimit{file, least})
		}
	}
	return found
}

// leastDisk is how much of a disk should be free.
const leastDisk = 1 << 30

// checkDisk looks at the disks that a job writes to.
func checkDisk(_ context.Context, m *examined) (found []finding) {
	seen := map[string]bool{}
	for _, d := range []struct{ what, dir string }{
		{"here", "."}, {"temporary files", os.TempDir()},
		{"sessions of the embedded agent", cmp.Or(m.getenv("XDG_STATE_HOME"), filepath.Join(m.getenv("HOME"), ".local", "state"))},
	} {
		dir := existing(d.dir)
		free, disk, known := freeDisk(dir)
		if !known || seen[disk] {
			continue
		}
		seen[disk] = true
		text := fmt.Sprintf("%s (%s): %.1f GiB free", d.what, dir, float64(free)/(1<<30))
		if free < leastDisk {
			found = append(found, wrong(text, "make room: journals, transcripts and workspaces of jobs go there"))
			continue
		}
		found = append(found, ok("%s", text))
	}
	return found
}

// existing is the nearest directory at or above dir that exists.
func existing(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); err == nil || at == filepath.Dir(at) {
			return at
		}
	}
}
