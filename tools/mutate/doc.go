// Command mutate breaks the code of closed rows of the parity ledger on purpose,
// one at a time, and runs the test that the row names. A test that still passes
// does not notice that its feature is gone: the row has to be open, or the test
// better.
//
//	go run ./tools/mutate            # all rows: ten minutes on two cores
//	go run ./tools/mutate -row option # rows whose id matches the expression
//	go run ./tools/mutate -n 20      # the first 20 of them
//
// The mutations are in mutations.txt: the row, the file, a text that occurs
// exactly once in it, and what stands there instead. A test of this package
// holds the texts against the files, so that none goes stale. The tree is never
// modified: the compiler gets the broken file with -overlay.
//
// Of the project the command imports only packages parity and mutation.
package main
