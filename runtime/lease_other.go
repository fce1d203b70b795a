//go:build !unix

package runtime

import "io/fs"

// own reports whether a directory is this user's: the one for temporary files is.
func own(info fs.FileInfo) bool { return info.IsDir() }

// writable reports whether this program may make files in its own directory.
func writable(string) bool { return true }

// alive reports whether there is a process with that id, as far as that is known.
func alive(int) bool { return true }

// bootID identifies this start of the system; "": not known.
func bootID() string { return "" }
