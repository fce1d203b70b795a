// Package runtime runs sessions: one actor system, one permanent fleet actor
// as the parent of all sessions, a registry, live introspection, events, and
// an orderly shutdown. It is for those who embed; most users want package sdk,
// which stands on it.
//
// What lives here: what sessions share. What must not: options in the vendors'
// terms, and anything about one agent alone.
package runtime
