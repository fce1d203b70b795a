// Package command is the body of the command troupe: its subcommands, their flags and texts, and
// its exit codes. A main package calls [Main] and exits with its result. A module whose path begins with
// that of this one can so build the same command with more agents, see [Agent].
//
// It has no package-level state, and nothing that a library would need. The package
// belongs to a program: it may use the wall clock and start goroutines, as programs do.
package command
