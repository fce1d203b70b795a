// Command api compares the exported names of the packages that docs/stability.md calls stable with
// those of the last record, in tools/api/recorded.zip. The packages are those of the main module
// and of the modules in contrib.
//
//	go -C tools run ./api           # compares
//	go -C tools run ./api -record   # records: after a release, and before the first one at will
//
// An addition is never a failure. An incompatible change is one unless the section Unreleased of
// CHANGELOG.md names it, as in `fleet.TaskResult.Err`, or what it is a part of, as in
// `fleet.TaskResult` or `fleet`. A stable package that names a type of a package without a promise
// is a failure too, except for the pairs in the table of may.go.
//
// golang.org/x/exp/apidiff decides whether a change is compatible. The names are those of Linux.
package main
