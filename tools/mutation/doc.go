// Package mutation breaks the module's code on purpose, one text at a time, and runs
// tests against the broken code. The tree is never modified: the compiler gets the broken
// file with -overlay.
//
// Not in this package: which texts are broken, and which tests have to notice.
package mutation
