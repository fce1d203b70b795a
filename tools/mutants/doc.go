// Command mutants breaks the code that simulations run, in hundreds of small ways, and looks
// whether the simulations of package simtests notice, and then whether the unit tests of the
// package do:
//
//	go run ./tools/mutants                     # draw, and try all of them: hours on two cores
//	go run ./tools/mutants -list               # only draw, and print where they are
//	go run ./tools/mutants -only 'machine/life.go' -histories 200
//	go run ./tools/mutants -of loop -n 60      # the embedded agent, and its simulations
//	go run ./tools/mutants -sample             # those of sample.txt, by simulations alone: a minute
//
// A mutant is one place and one operator: a case that is dropped, a condition that is negated,
// a number that is off by one, two effects that are swapped, an error that is lost, a
// synchronization that is missing (a sync of a file, a lock, a signal, a close of a channel).
// They are drawn by a seed from the lines that the simulations execute. The draw of a place depends on nothing but the seed and the place's own
// text, so a change elsewhere leaves the others as they are.
//
// All mutants are compiled into one copy of the tree, and the environment's TROUPE_MUTANT
// selects one when a program starts: so there is one build for all of them. The tree itself is
// never modified.
//
// Mutants that nothing could ever notice are in equivalent.txt, each with the argument. They
// are counted apart. docs/simulation.md has the numbers of the last whole run, and results.txt
// what became of each mutant.
package main
