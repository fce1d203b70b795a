// Package store has session stores for session.Options.SessionStore: [Memory] for tests and
// [Dir] for a directory, such as one on a file server. Module contrib/sqlite has one for
// SQLite; package transcript/storetest tests your own.
//
// What the agents' own files look like must not live here; it is in package transcript.
package store
