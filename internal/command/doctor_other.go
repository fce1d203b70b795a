//go:build !linux && !darwin

package command

// processLimits are not known here.
func processLimits() (files, processes uint64) { return 0, 0 }

// freeDisk is not known here.
func freeDisk(string) (free uint64, disk string, known bool) { return 0, "", false }
