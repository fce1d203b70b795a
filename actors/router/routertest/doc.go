// Package routertest runs a router's actor with the user's side, for the tests of the
// packages around them.
//
// Not in this package: anything that another package than a test imports.
package routertest
