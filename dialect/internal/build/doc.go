// Package build has the code that the dialects share to make a launch: the argument list with its limits, JSON objects
// with a fixed order of keys, settings into which several options are merged, and checks that apply to every agent.
//
// The names of an agent's flags must not live here.
package build
