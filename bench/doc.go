// Package bench measures the path of a message: how fast it is, and what a
// session costs in memory. Nothing here is asserted by a timed test; the
// programs print figures, and README.md says how to read them.
//
// In this package: Go benchmarks with their baselines, and programs that drive agent
// processes. Not in this package: anything that the library needs, or that reaches into
// it other than through package sdk.
package bench
