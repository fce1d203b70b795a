// Package callbacktest runs a callback actor by itself, in virtual time, for the
// tests of the packages that make one.
//
// What must not live here: anything that another package than a test imports.
package callbacktest
