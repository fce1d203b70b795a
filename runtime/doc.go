// Package runtime runs sessions: one actor system, one permanent fleet actor that is
// the parent of all sessions, a registry, live introspection, events, and an orderly
// shutdown. Programs use it to share limits and a logger among sessions; for
// everything else use package sdk, which is built on it.
//
// The parts that sessions share live here. Options in the vendors' terms, and code for
// one agent alone, must not live here.
package runtime
