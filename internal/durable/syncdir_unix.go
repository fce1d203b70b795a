//go:build unix

package durable

import (
	"errors"
	"os"
)

func syncDir(open func(string) (*os.File, error), path string) error {
	d, err := open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
