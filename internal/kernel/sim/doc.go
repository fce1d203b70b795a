// Package sim is the deterministic set of seams: one thread, a seeded choice
// of what runs next, and virtual time that jumps to the next timer when
// nothing is left to do. The same seed gives the same history.
//
// In this package: the scheduler. Not in this package: anything about sessions;
// whatever runs on it cannot tell that it is simulated.
package sim
