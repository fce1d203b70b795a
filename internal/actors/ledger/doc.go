// Package ledger is the user's side of a session: the stream of messages, and those
// who wait for turns and calls, keyed by their ids. Promises, contexts and the one
// consumer live here, and nothing that decides: the router tells what became of
// things, and users' wishes go to it as messages.
//
// What must not live here: I/O, waiting inside an actor, and what a session knows,
// which is the routing's.
package ledger
