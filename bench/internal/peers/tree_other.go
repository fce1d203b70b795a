//go:build !linux

package peers

import (
	"errors"
	"os"
	"time"
)

// adopt fails: the figures are read from Linux's /proc.
func adopt() error { return errors.New("this program needs Linux") }

func pss() float64                    { return 0 }
func cpu() time.Duration              { return 0 }
func reap() error                     { return nil }
func available() float64              { return 0 }
func peakOf(*os.ProcessState) float64 { return 0 }
