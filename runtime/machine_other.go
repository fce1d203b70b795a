//go:build !linux

package runtime

// canMeasure says that [measure] works on this system.
const canMeasure = false

// measure is not called: Admission.Measure is required here.
func measure(string) HostUsage { return HostUsage{} }

// measureTrees finds nothing here.
func measureTrees(map[int]int64) {}
