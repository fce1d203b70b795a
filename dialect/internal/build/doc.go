// Package build holds what the dialects share in making a launch: the argument list with its limits, JSON objects with
// a fixed order of keys, settings that several options are merged into, and the checks that hold for every agent.
//
// Nothing here knows a flag of an agent by name.
package build
