//go:build !linux

package confine

import (
	"errors"
	"fmt"
)

// Available returns an error that wraps [errors.ErrUnsupported].
func Available() error {
	return fmt.Errorf("commands are confined on Linux alone: %w", errors.ErrUnsupported)
}

func (Rules) exec([]string, []string) error { return Available() }

func isOwn(string) bool { return false }
