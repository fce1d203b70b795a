//go:build unix

package main

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"syscall"
)

// peakMB returns the largest resident memory of this process.
func peakMB() float64 {
	// On Linux, the figure of getrusage begins with that of the parent.
	if raw, err := os.ReadFile("/proc/self/status"); err == nil {
		if _, rest, ok := bytes.Cut(raw, []byte("VmHWM:")); ok {
			if fields := bytes.Fields(rest); len(fields) > 0 {
				if kb, err := strconv.ParseFloat(string(fields[0]), 64); err == nil {
					return kb / 1024
				}
			}
		}
	}
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	kb := float64(u.Maxrss)
	if runtime.GOOS == "darwin" {
		kb /= 1024 // darwin counts bytes
	}
	return kb / 1024
}
