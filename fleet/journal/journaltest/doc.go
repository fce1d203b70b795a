// Package journaltest tests implementations of journal.Journal.
//
// In this package: the conformance suite [Run], and [Disk], a file system in memory
// that crashes: it can lose any part of what was not synced. Not in this package:
// anything that a program needs outside tests.
package journaltest
