//go:build !race

package simtests_test

const (
	stressSessions  = 200
	stressCallbacks = 200
)
