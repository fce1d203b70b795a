// Package simtests runs whole sessions on the seeded scheduler, against
// scripted agents and with faults, and checks the library's invariants by
// name. It holds the project's own simulations, which run in the worlds of
// internal/world; the kit for users will be here too.
//
// What must not live here: tests of single packages.
package simtests
