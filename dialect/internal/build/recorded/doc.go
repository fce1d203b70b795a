// Package recorded reads the recordings of vendors' SDKs that the dialects are tested against.
//
// Only tests import it. Code that a program needs must not live here.
package recorded
