// Package modeloracle holds the codecs of package model against the vendors' own libraries:
// the same conversation is the same request, and the same bytes of a stream are the same
// answer. It has tests alone, in a separate module, so that nothing else depends on those
// libraries.
package modeloracle
