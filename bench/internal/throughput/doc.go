// Package throughput measures how many tasks a job of package fleet has done in a second,
// against the bare loop, and how long callbacks of a crowd of sessions wait.
//
// In this package: these two measurements. Not in this package: agents, which are package
// fast's, and flags.
package throughput
