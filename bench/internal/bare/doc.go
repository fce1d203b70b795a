// Package bare is the least a Go program can do to serve an agent: one loop
// that reads its lines, decodes control requests and the result, and answers
// from the reader. Nothing is typed, delivered, supervised or swept, and a slow
// callback stops everything: it is the mark that sessions are measured against,
// not a way to do it.
//
// In this package: that loop. Not in this package: any part of the library.
package bare
