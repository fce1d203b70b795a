// Package shown makes the text by which a struct that may hold secrets is printed
// and logged.
//
// It is importable, but no compatibility is promised.
package shown
