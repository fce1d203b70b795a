// Package lint holds the analyzers that keep Troupe's seams closed. Each one
// guards a rule the simulation and the invariants stand on:
//
//   - seams: no clock, goroutine, randomness or deadline but through the kernel
//   - selectready: no select that could choose between two ready channels
//   - maporder: no map iteration whose order can be seen outside it
//   - globals: no package-level mutable state
//   - layers: imports point up the list of the layers only
//   - publicproto: no type of the actor library in an exported declaration
//   - directives: no allowance without a known rule
//
// Where a rule does not fit, a comment on the same line or in the group right
// above allows one place and says why:
//
//	//troupe:select both channels mean the same end, so either may win
//
// An allowance without a reason, or one that allows nothing, is reported.
//
// Which packages a rule covers is decided in policy.go alone. Tests are never
// covered. General Go style is golangci-lint's business, not this package's.
package lint
