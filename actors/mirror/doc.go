// Package mirror copies what an agent stores of its session into a session.Store. It is a
// child of the session, as users have them, and it never holds up the session.
//
// How a session is loaded from a store must not live here; it is in package runtime.
package mirror
