// Package parity keeps the ledger in testdata/parity.md: a row for everything that
// the vendors' SDKs and agents have, and what of it is there.
//
// A test says which rows it closes:
//
//	parity.Covers(t, "claude/option/model")
//
// A row counts as closed only if such a test ran and passed in the run that
// looks: with TROUPE_PARITY set to a directory, tests that pass leave their
// rows there, and [Check] holds them against the document. One test covers at
// most [MaxRows] rows, so that a row is closed by a test that is about it;
// subtests count for themselves.
//
// The names in testdata/names are those of the vendors' documents and of the
// recorded traffic, so that nothing of them is missing in the ledger.
//
// The package imports nothing of the project, and nothing but tests imports it.
package parity
