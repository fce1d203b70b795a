// Package actors is the tree of one session: the session actor, which owns
// [machine.Life] and supervises transport, router and callbacks, and the supervisor of
// the callback actors, one for each kind of the agent's requests. The packages below this
// one hold the other actors.
//
// This package decides which actors are started, stopped and restarted, when, and what a
// failure means for the session. It does not handle bytes, frames, or the user's
// callbacks.
//
// actors and the packages below it are importable, but no compatibility is promised: their
// declarations use internal types, and may change in any release.
package actors
