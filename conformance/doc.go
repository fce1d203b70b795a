// Package conformance runs Troupe against the real agent CLIs.
//
// Its tests carry the build tag "conformance", because they need a CLI on the
// machine; they need no account and no network, since the model is the scripted
// endpoint of conformance/modelapi:
//
//	.ci/conformance-install
//	go test -race -tags conformance ./conformance/...
//
// Here live the pinned version of the CLI, the way to find it, the environment
// that keeps it offline, and the tests. Anything about the protocol itself that
// can be shown with a scripted agent belongs to the package it concerns.
package conformance
