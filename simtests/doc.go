// Package simtests runs whole sessions on the seeded scheduler, against
// scripted agents and with faults, and checks the library's invariants by
// name. Today it holds the project's own simulations; the kit that users can
// build on will stand here too.
//
// What must not live here: tests of single packages.
package simtests
