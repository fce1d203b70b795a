// Package base has small helpers that know nothing of agents, one in each package below it: suggestions
// for misspelt names, structs without their secrets, JSON as the vendors write it and by its structure,
// and server-sent events. This package itself has no code.
package base
