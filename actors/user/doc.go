// Package user is the user's side of a session: the stream of messages, and the waiters
// of turns and calls, by id. It owns their promises and contexts, and the one consumer of
// the stream. The router reports how turns and calls end, and it sends the user's
// requests to the router.
//
// I/O, waiting inside an actor, and decisions about the session must not live here.
package user
