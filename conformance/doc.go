// Package conformance runs Troupe against the real agent CLIs.
//
// Its tests carry the build tag "conformance", because they need the CLIs on the
// machine; they need no account and no network, since the model is the scripted
// endpoint of conformance/modelapi:
//
//	.ci/conformance-install
//	go test -race -tags conformance ./conformance/...
//
// Two releases of Claude Code are held against the public sdk: all of it against
// the later one, and what every user needs against an older one, too. Without a
// login qodercli answers control requests and no more, so that is what is held
// against it.
//
// Here live the pinned versions of the CLIs, the way to find them, the
// environment that keeps them offline, and the tests. Anything about the protocol itself that
// can be shown with a scripted agent belongs to the package it concerns.
package conformance
