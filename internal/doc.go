// Package internal has what other modules cannot import, below it: the kernel, processes, confinement,
// the body of the command, and tests that need more than one package. This package itself has no code.
package internal
