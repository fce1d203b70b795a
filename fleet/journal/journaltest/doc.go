// Package journaltest tests implementations of journal.Journal.
//
// What lives here: the conformance suite [Run], and [Disk], a file system in memory that
// crashes: it can lose any part of what was not synced. What must not: anything that a
// program needs outside tests.
package journaltest
