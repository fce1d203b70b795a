// Package examples has programs that show one thing each, below it. All run without an account and a
// network, by agents that are built in. This package itself has no code.
package examples
