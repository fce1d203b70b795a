// Package callbacktest runs a callback actor by itself, in virtual time, for the
// tests of the packages that make one.
//
// Not in this package: anything that another package than a test imports.
package callbacktest
