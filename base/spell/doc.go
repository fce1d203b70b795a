// Package spell measures how far apart two words are, for errors that name the
// word that was probably meant.
//
// Not in this package: lists of words, and when to suggest one.
//
// It is importable, but no compatibility is promised.
package spell
