// Package simtests is the simulation kit. [Explore] plays a scenario, which opens whole
// sessions against scripted agents, in many histories: each on virtual time, one step at a
// time, in an order and with faults that follow from a seed. A failure is made smaller,
// kept, and reported with a token that plays it again. The kit checks Troupe's promises by
// name; a scenario adds its own checks.
//
// docs/simulation.md is the tutorial, with the catalogue of faults and oracles.
//
// The tests of the package are the project's own simulations. Not in this package: tests
// of single packages.
package simtests
