// Package world is where tests run whole sessions: a runtime on the seeded
// scheduler and its fake clock, or on the seams of production, with scripted
// agents and a record of what agents, user and actors did. A failure names its
// seed.
//
//	world.Both(t, world.Seeds(t, 10, 50), func(t *testing.T, w *world.World) {
//		s, err := w.Open(w.Context(), runtime.Spec{Dialect: claude.New(), Program: w.Agent(script)})
//		…
//	})
//
// In this package: what the tests of runtime, sdk and simtests have in common. Not in this package:
// a scenario of one of them, and anything that production imports. The package is internal because
// its seams are the kernel's types, which no public signature may name.
package world
