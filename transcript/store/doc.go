// Package store has session stores for session.Options.SessionStore: [Memory] for tests and
// [Dir] for a directory, such as one on a file server. Module contrib/sqlite has one for
// SQLite, and contrib/nats one for NATS JetStream; package transcript/storetest tests your own.
//
// Package transcript knows the format of the agents' own files.
package store
