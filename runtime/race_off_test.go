//go:build !race

package runtime_test

const (
	stressSessions  = 200
	stressCallbacks = 200
)
