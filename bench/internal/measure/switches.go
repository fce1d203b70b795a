package measure

import "runtime/metrics"

// tracked is one in how many times a goroutine's way to a processor is looked
// at by the Go runtime.
const tracked = 8

// Switches is how often goroutines of this program gave up running, for a wait or
// a system call, nearly: the runtime looks at one in eight.
func Switches() int64 {
	sample := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindFloat64Histogram {
		return 0
	}
	var n uint64
	for _, c := range sample[0].Value.Float64Histogram().Counts {
		n += c
	}
	return int64(n) * tracked
}
