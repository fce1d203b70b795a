package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
)

// machine is where the figures were measured.
type machine struct {
	System    string  `json:"system"` // with its kernel
	Processor string  `json:"processor,omitempty"`
	Cores     int     `json:"cores"`
	MemoryGB  float64 `json:"memory_gb,omitempty"`
	Go        string  `json:"go"`
}

func thisMachine() machine {
	m := machine{System: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.NumCPU(), Go: runtime.Version()}
	if kernel, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		release, _, _ := strings.Cut(strings.TrimSpace(string(kernel)), "-") // without what a distribution adds
		m.System += " " + release
	}
	cpu, _ := os.ReadFile("/proc/cpuinfo") // only Linux has it
	if found := regexp.MustCompile(`(?m)^model name\s*: (.*)$`).FindSubmatch(cpu); found != nil {
		m.Processor = strings.TrimSpace(string(found[1]))
	}
	memory, _ := os.ReadFile("/proc/meminfo")
	if found := regexp.MustCompile(`(?m)^MemTotal:\s*(\d+) kB$`).FindSubmatch(memory); found != nil {
		kb, _ := strconv.ParseFloat(string(found[1]), 64) // it has digits alone
		m.MemoryGB = kb / (1 << 20)
	}
	return m
}

func (m machine) String() string {
	text := m.System + ", " + strconv.Itoa(m.Cores) + " cores"
	if m.Processor != "" {
		text += " (" + m.Processor + ")"
	}
	if m.MemoryGB > 0 {
		text += fmt.Sprintf(", %.0f GB", m.MemoryGB)
	}
	return text + ", " + m.Go
}

// load is the load average of the last minute.
func load() string {
	all, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "not known"
	}
	return strings.Fields(string(all))[0]
}

// commit is that of the tree in which the program runs.
func commit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "not known"
	}
	return strings.TrimSpace(string(out))
}

// cacheDir is where -install puts packages by default.
func cacheDir() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "troupe", "compare")
}
