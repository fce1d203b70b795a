// Package event holds what a session reports about itself besides the agent's
// messages: state changes, crashes and restarts, diagnostics of the wire,
// callbacks that failed. Events are values; they carry no user content beyond
// short heads of lines that could not be read, and never a secret.
//
// What must not live here: behaviour, and messages between actors.
package event
