// Package wire encodes and decodes JSON as the vendors write it: compact objects
// with further keys, and durations in milliseconds.
//
// Not in this package: a type of the protocol or of the options, and anything that
// knows a vendor.
//
// It is importable, but no compatibility is promised.
package wire
