// Package lint holds the analyzers that keep Troupe's seams closed. Each one
// guards a rule the simulation and the invariants stand on:
//
//   - seams: no clock, goroutine, randomness or deadline but through the kernel
//   - selectready: no select that could choose between two ready channels
//   - maporder: no map iteration whose order can be seen outside it
//   - layers: imports point up the list of the layers only
//   - publicproto: no type of the actor library in an exported declaration, and no
//     type of an internal package in the packages that users import
//   - values: no goroutine, channel, lock or function in a machine
//   - owned: no field of a job's machine, or of a task in it, outside the machine's files
//   - locks: no lock in an actor's package that is not on a list, with its reason
//   - directives: no allowance without a known rule
//
// Where a rule does not fit, a comment on the same line or in the group right
// above allows one place and says why:
//
//	//troupe:select both channels mean the same end, so either may win
//
// An allowance without a reason, or one that allows nothing, is reported.
//
// Only policy.go decides which packages a rule covers. Tests are never covered.
//
// Rules that golangci-lint can express are left to it: package-level state is
// gochecknoglobals', general style the others'. These rules stay, because it cannot
// express them:
//
//   - seams: forbidigo has no rule for a go statement, and golangci-lint reads the
//     files of one system only.
//   - selectready, maporder: no linter knows them.
//   - layers: depguard has no order. A separate rule for each of the 38 entries, naming
//     all entries after it, would need 900 lines in place of a list of 30, and a
//     package that has no place in the list would pass.
//   - publicproto: depguard sees imports, and not that an exported type holds one
//     of another package.
//   - locks: forbidigo could forbid the type, and not name the places that may have it.
//   - directives: it checks the allowances of the others.
package lint
