// Package durable writes files so that a loss of power leaves all of a change or nothing of
// it: the one way in which the journal of a job, session stores, edits of transcripts and the
// runtime's records reach the disk.
//
// Not in this package: what the files say.
package durable
