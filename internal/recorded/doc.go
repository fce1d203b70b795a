// Package recorded has files that earlier releases have written, and tests that this release
// reads them: directories of jobs, a session store, a cassette, and answers of a job's control
// server. docs/stability.md says what is promised about them.
//
// contrib/nats has the same for the streams of a job on many machines.
//
// testdata has a folder for each release, named like it. A folder is never changed after its
// release. go test ./internal/recorded -record NAME makes a new one.
package recorded
