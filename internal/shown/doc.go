// Package shown makes the text by which a struct that may hold secrets is printed
// and logged.
package shown
