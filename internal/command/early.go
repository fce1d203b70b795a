package command

import (
	"fmt"
	"os"
	"slices"
	"syscall"
)

// endedError is a signal that came before a command had started anything.
type endedError struct{ signal os.Signal }

func (e *endedError) Error() string {
	why := "interrupted"
	if e.signal != os.Interrupt {
		why = fmt.Sprintf("ended by a signal: %v", e.signal)
	}
	return why + "; nothing was started"
}

// code is the exit code.
func (e *endedError) code() int {
	number, _ := e.signal.(syscall.Signal)
	return exitSignal + int(number)
}

// unlessEnded does what comes before anything starts, and may wait for long: a file may be a pipe without a writer.
// Its error is an [endedError] if a signal came before the end. do may not have ended then, but this program does.
func (p process) unlessEnded(do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		if ended := p.ended(); ended != nil { // it has ended the writer of the pipe, too: what was read is not all
			return ended
		}
		return err
	case sig := <-p.signals:
		return &endedError{sig}
	}
}

// ended is the signal that has come, or nil.
func (p process) ended() error {
	select {
	case sig := <-p.signals:
		return &endedError{sig}
	default:
		return nil
	}
}

// readsFiles reports whether flags of the command line are read from files.
func (s *settings) readsFiles() bool {
	return slices.ContainsFunc(s.given, func(f givenFlag) bool {
		return slices.Contains([]string{"config", "mcp-config", "template", "verify-prompt"}, f.name)
	})
}
