// Package command is the body of the command troupe: its subcommands, their flags and texts, and
// its exit codes. A main package calls [Main] and exits with its result, so that another module can
// build the same command with agents of its own, see [Agent].
//
// What must not live here: anything a library would need, and package-level state. The package
// belongs to a program: it may use the wall clock and start goroutines, as programs do.
package command
