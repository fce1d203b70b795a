// Package recorded reads the recordings of vendors' SDKs that the dialects are tested against.
//
// Tests alone import it. What must not live here: anything a program needs.
package recorded
