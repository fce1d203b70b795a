package durable

import "os"

// syncDir does nothing: Windows cannot sync a directory.
func syncDir(func(string) (*os.File, error), string) error { return nil }
