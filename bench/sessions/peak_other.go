//go:build !unix

package main

// peakMB is not known here.
func peakMB() float64 { return 0 }
