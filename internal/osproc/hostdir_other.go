//go:build !unix

package osproc

import (
	"errors"
	"os"
)

// lockDir has no locks of directories here, so nothing that a dead host left is
// ever swept.
func lockDir(string) (*os.File, error) { return nil, errors.ErrUnsupported }
