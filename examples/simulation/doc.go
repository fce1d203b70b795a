// Package simulation has two programs with a bug, and the fixed version of each. The
// simulation kit finds both bugs, and does not find them in the fixed versions:
//
//	go test ./examples/simulation -v
//
// The first bug is a race: [RacyLedger] pays an order twice when two sessions refund it at
// the same time. [Ledger] is the fixed version. The second is a crash that the program
// does not handle: [ForgetfulDesk] leaves an order in progress forever when the agent dies.
// [Desk] is the fixed version.
//
// docs/simulation.md explains the tests line by line.
package simulation
