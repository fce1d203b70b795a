// Package cmd has the program of this module, the command troupe, below it. Its body is in
// internal/command. This package itself has no code.
package cmd
