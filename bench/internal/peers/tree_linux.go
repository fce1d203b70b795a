package peers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// adopt makes this process the parent of processes whose parents die, so that they count too.
func adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the parent of orphans: %w", err)
	}
	return nil
}

// tree are the processes below this one, with their parents.
func tree() map[int]int {
	parents := map[int]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		if pid, parent, _, err := readStat(path); err == nil { // else it has ended
			parents[pid] = parent
		}
	}
	below := map[int]int{}
	self := os.Getpid()
	for pid, parent := range parents {
		for at := parent; at > 0; at = parents[at] {
			if at == self {
				below[pid] = parent
				break
			}
		}
	}
	return below
}

// readStat reads a process's stat file: its parent, and the processor time of it and of its
// children that were reaped.
func readStat(path string) (pid, parent int, cpu time.Duration, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, 0, err
	}
	return parseStat(string(data))
}

// parseStat reads it from the file's text; the name in it may have spaces and brackets.
func parseStat(text string) (pid, parent int, cpu time.Duration, err error) {
	open, shut := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || shut < open {
		return 0, 0, 0, fmt.Errorf("not a stat file: %q", text)
	}
	rest := strings.Fields(text[shut+1:])
	if len(rest) < 15 {
		return 0, 0, 0, fmt.Errorf("not a stat file: %q", text)
	}
	pid, err = strconv.Atoi(strings.TrimSpace(text[:open]))
	if err != nil {
		return 0, 0, 0, err
	}
	if parent, err = strconv.Atoi(rest[1]); err != nil {
		return 0, 0, 0, err
	}
	for _, ticks := range rest[11:15] { // utime, stime, cutime, cstime
		n, err := strconv.ParseInt(ticks, 10, 64)
		if err != nil {
			return 0, 0, 0, err
		}
		cpu += time.Duration(n) * time.Second / 100 // USER_HZ
	}
	return pid, parent, cpu, nil
}

// pss is the proportional set size of all processes below this one, in MB.
func pss() (mb float64) {
	for pid := range tree() {
		data, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/smaps_rollup") // if not, it has ended
		mb += megabytes(string(data), "Pss")
	}
	return mb
}

// megabytes is the value of a line such as "Pss:  12 kB".
func megabytes(text, key string) float64 {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, key+":"); ok {
			kb, _ := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 64)
			return kb / 1024
		}
	}
	return 0
}

// cpu is the processor time of all processes below this one, those that were reaped included.
func cpu() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &u); err != nil {
		return 0
	}
	sum := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	for pid := range tree() {
		if _, _, used, err := readStat("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil {
			sum += used
		}
	}
	return sum
}

// reap ends all processes below this one, and waits for them. Nothing else of this program
// has children then.
func reap() error {
	for range 1000 {
		for pid := range tree() {
			_ = unix.Kill(pid, unix.SIGKILL) // it may have ended
		}
		for {
			pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
			if errors.Is(err, unix.ECHILD) {
				return nil
			}
			if err != nil && !errors.Is(err, unix.EINTR) {
				return err
			}
			if pid == 0 {
				break
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	return errors.New("processes of an agent do not end")
}

// available is the memory that processes can still have, in MB; 0: it is not known.
func available() float64 {
	data, _ := os.ReadFile("/proc/meminfo")
	return megabytes(string(data), "MemAvailable")
}

// peakOf is the peak of a process's resident set as the kernel has it, in MB.
func peakOf(state *os.ProcessState) float64 {
	if u, ok := state.SysUsage().(*syscall.Rusage); ok {
		return float64(u.Maxrss) / 1024
	}
	return 0
}
