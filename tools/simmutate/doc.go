// Command simmutate plants bugs in the library, one at a time, and looks whether an
// exploration of the simulation kit finds them, with nothing but the kit's own oracles:
//
//	go run ./tools/simmutate            # all bugs: about 20 minutes on two cores
//	go run ./tools/simmutate -bug 'twice|lost'
//	go run ./tools/simmutate -seeds 500
//
// It runs simtests.TestPlantedBugs and prints how many seeds each bug took. A bug that is
// not found within the seeds is an error: the kit needs a fault, a scenario or an oracle.
// docs/simulation.md has the table.
//
// The bugs are in bugs.txt, in the form of package mutation. A test of this package holds
// the texts against the files, so that none goes stale.
package main
