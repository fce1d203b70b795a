//go:build unix

package command

import (
	"io"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

const ttyName = "/dev/tty"

// isTerminal reports whether f is a terminal: only those have a window size.
func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

// wasClosed reports whether f, one of the standard files, was closed when the program was
// started. Go then opens /dev/null in its place, for reading and writing (runtime/fds_unix.go).
// Shells, and programs that discard the output of a child, open it for writing alone.
func wasClosed(f *os.File) bool {
	var is, null unix.Stat_t
	if unix.Fstat(int(f.Fd()), &is) != nil || unix.Stat(os.DevNull, &null) != nil || is.Mode&unix.S_IFMT != unix.S_IFCHR || is.Rdev != null.Rdev {
		return false
	}
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	return err == nil && flags&unix.O_ACCMODE == unix.O_RDWR
}

// editTerminal has the terminal send each key, without an echo; Ctrl-C is still a signal,
// and lines that are written still end. changed is called when its size may have changed.
func editTerminal(in io.Reader, changed func()) (size func() (int, int), restore func(), err error) {
	f, ok := in.(*os.File)
	if !ok {
		return nil, nil, errNoEditor
	}
	fd := int(f.Fd())
	before, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil, nil, err
	}
	edited := *before
	edited.Lflag &^= unix.ICANON | unix.ECHO | unix.IEXTEN
	edited.Cc[unix.VMIN], edited.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, setTermios, &edited); err != nil {
		return nil, nil, err
	}
	signals, over := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, unix.SIGWINCH, unix.SIGCONT)
	go func() {
		for {
			select {
			case s := <-signals:
				if s == unix.SIGCONT { // the shell has set the terminal meanwhile
					_ = unix.IoctlSetTermios(fd, setTermios, &edited)
				}
				changed()
			case <-over:
				return
			}
		}
	}()
	size = func() (int, int) {
		width, height, err := term.GetSize(fd)
		if err != nil || width <= 0 {
			return 80, 24
		}
		return width, height
	}
	return size, func() {
		signal.Stop(signals)
		close(over)
		_ = unix.IoctlSetTermios(fd, setTermios, before)
	}, nil
}
