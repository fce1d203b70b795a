package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// extension is that of the sockets in [DefaultDir].
const extension = ".sock"

// DefaultDir returns the directory of the sockets that troupe ps finds:
// $XDG_RUNTIME_DIR/troupe, or troupe/run in [os.UserCacheDir] if the variable is not set.
func DefaultDir() (string, error) {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "troupe"), nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("inspect: there is no directory for the socket: set XDG_RUNTIME_DIR: %w", err)
	}
	return filepath.Join(cache, "troupe", "run"), nil
}

// defaultSocket returns the path of this process's socket in [DefaultDir]: its process id
// with the extension .sock.
func defaultSocket() (string, error) {
	dir, err := DefaultDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, strconv.Itoa(os.Getpid())+extension), nil
}

// Sockets returns the paths of the sockets in a directory, sorted by name. A process that
// has died may have left its socket behind; [Fetch] then fails with [ErrDead]. A
// directory that does not exist has no sockets. Like [Listen], it refuses a directory
// that others can write to, with a *[session.ConfigError].
func Sockets(dir string) ([]string, error) {
	err := checkDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	var all []string
	for _, f := range found {
		if f.Type()&fs.ModeSocket != 0 && filepath.Ext(f.Name()) == extension {
			all = append(all, filepath.Join(dir, f.Name()))
		}
	}
	slices.Sort(all)
	return all, nil
}
