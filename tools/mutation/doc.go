// Package mutation breaks the module's code on purpose, one text at a time, and runs
// tests against the broken code. The tree is never modified: the compiler gets the broken
// file with -overlay.
//
// What must not live here: which texts are broken, and which tests have to notice.
package mutation
