//go:build race

package runtime_test

// Under the race detector, which allows 8,128 goroutines at a time.
const (
	stressSessions  = 40
	stressCallbacks = 100
)
