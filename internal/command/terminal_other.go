//go:build !unix

package command

import (
	"io"
	"os"
)

const ttyName = "CONIN$"

// isTerminal reports whether f is a character device other than the null one.
func isTerminal(f *os.File) bool {
	st, err := f.Stat()
	if err != nil || st.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(st, null)
}

// wasClosed reports false: a standard file that was closed is an error of its own here.
func wasClosed(*os.File) bool { return false }

// editTerminal returns an error: lines are edited by the terminal here.
func editTerminal(io.Reader, func()) (size func() (int, int), restore func(), err error) {
	return nil, nil, errNoEditor
}
