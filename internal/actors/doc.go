// Package actors is the tree of one session: the session actor, which owns the
// state machine and supervises transport, router and callbacks, and the
// supervisor of the callback actors, one for each kind of the agent's requests.
//
// What lives here: who is started, stopped and restarted, when, and what a
// failure means for the session. What must not: bytes, frames, and the user's
// callbacks themselves.
package actors
