// Package tools is a module with the programs that check the project, below it: analyzers, mutants,
// coverage by simulations, words, the exported names and the modules of a release. They are run by
// .ci/run and .ci/full. This package itself has no code.
package tools
