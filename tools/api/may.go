package main

// mayName has, for some stable packages, packages without a promise whose types their exported
// names may have.
//
//nolint:gochecknoglobals // only read
var mayName = map[string][]string{
	"fleet/control": {"inspect/ui"},            // the window's side of a job
	"simtests":      {"agent/cloud/cloudtest"}, // the cloud is experimental, also in a simulation
}
