package measure

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// Modes of the programs.
const (
	Stream = "stream" // one turn of n stream events
	Hook   = "hook"   // n PreToolUse hooks, one after the other
	Perm   = "perm"   // n permission requests, one after the other
	MCP    = "mcp"    // n calls of an in-process tool, one after the other
	Work   = "work"   // one turn of n milliseconds
	Idle   = "idle"   // sessions that have had a turn and are held
	// Probe is for one question only: can an event pass a hook that waits for
	// it? Where hooks run on the reader it cannot.
	Probe = "probe"
)

// Known reports whether mode is one of the public modes.
func Known(mode string) bool {
	switch mode {
	case Stream, Hook, Perm, MCP, Work, Idle:
		return true
	}
	return false
}

// Environment variables with the same content as the prompt.
const (
	ModeEnv  = "BENCH_MODE"
	CountEnv = "BENCH_N"
)

// Prompt is the one user message of a turn: the mode and the count, as in
// "hook 1000".
func Prompt(mode string, n int) string { return fmt.Sprintf("%s %d", mode, n) }

// Asked reads what [Prompt] wrote. Values that the prompt lacks come from the
// environment; the default mode is Idle, the default count 0.
func Asked(prompt string, getenv func(string) string) (mode string, n int) {
	mode, count, _ := strings.Cut(strings.TrimSpace(prompt), " ")
	if !Known(mode) && mode != Probe {
		mode, count = getenv(ModeEnv), getenv(CountEnv)
	}
	if !Known(mode) && mode != Probe {
		return Idle, 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(count))
	if err != nil || n < 0 {
		n = 0
	}
	return mode, n
}

// Result is the text of the result that reports ns nanoseconds.
func Result(ns int64) string { return fmt.Sprintf("%d ns", ns) }

// Nanoseconds reads what the agent reports: "<N> ns" anywhere in the text of
// its result, else 0.
func Nanoseconds(result string) int64 {
	found := regexp.MustCompile(`(\d+) ns\b`).FindStringSubmatch(result)
	if found == nil {
		return 0
	}
	ns, err := strconv.ParseInt(found[1], 10, 64)
	if err != nil {
		return 0
	}
	return ns
}

// Line is the line of figures that a host prints. Its keys are a contract.
type Line struct {
	Mode       string  `json:"mode"`
	N          int     `json:"n"`
	Sessions   int     `json:"sessions"`
	Messages   int64   `json:"messages"`
	CLINanos   int64   `json:"cli_ns"`
	WallMillis float64 `json:"wall_ms"`
	CPUMillis  float64 `json:"cpu_ms"`
	RSS        float64 `json:"rss_mb"`
	Base       float64 `json:"base_mb"`
	Peak       float64 `json:"peak_mb"`
	Heap       float64 `json:"heap_mb"`
	Goroutines int     `json:"goroutines"`
}

// MB is a number of bytes in MiB, to a hundredth of a KiB.
func MB(bytes int64) float64 {
	const unit = 1 << 20
	return float64(int64(float64(bytes)/unit*1e5+0.5)) / 1e5
}

// Settle collects garbage and gives what is free back to the system.
func Settle() {
	runtime.GC()         // finalizers of the first make garbage for the second
	debug.FreeOSMemory() // collects, too
}

// RSS is this process's resident set in bytes; 0 where there is no /proc.
func RSS() int64 { return RSSOf(os.Getpid()) }

// RSSOf is the resident set of a process in bytes; 0 if it is not known.
func RSSOf(pid int) int64 {
	statm, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(statm))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// Peak is the highest resident set that this process has had, in bytes; 0 where there is
// no /proc.
func Peak() int64 {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kb << 10
		}
	}
	return 0
}

// Heap is the number of bytes of live and not yet collected objects.
func Heap() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
