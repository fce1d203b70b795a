package callback

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxLinks bounds the symbolic links in one path, as Linux does.
const maxLinks = 40

// resolveLinks is the default of Policy.Resolve: it follows the symbolic links of
// an absolute path, also of one whose end does not exist, or not yet. Unlike
// [filepath.EvalSymlinks] it thus says where a file will be made, through a link
// to nothing too.
func resolveLinks(path string) (string, error) {
	native := filepath.FromSlash(path)
	if volume := filepath.VolumeName(strings.TrimPrefix(native, string(filepath.Separator))); volume != "" {
		native = native[1:] // see slashed
	}
	done, rest := filepath.VolumeName(native)+string(filepath.Separator), strings.TrimPrefix(native[len(filepath.VolumeName(native)):], string(filepath.Separator))
	for links := 0; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, string(filepath.Separator))
		if name == ".." {
			done = filepath.Dir(done)
			continue
		}
		at := filepath.Join(done, name) // also "" and "."
		info, err := os.Lstat(at)
		switch {
		case absent(err): // so that nothing below it is a link
			return slashed(filepath.Join(at, rest)), nil
		case err != nil:
			return "", fmt.Errorf("resolve %s: %w", path, err)
		case info.Mode()&fs.ModeSymlink == 0:
			done = at
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("resolve %s: more than %d symbolic links", path, maxLinks)
		}
		target, err := os.Readlink(at)
		if err != nil {
			return "", fmt.Errorf("resolve %s: %w", path, err)
		}
		if filepath.IsAbs(target) {
			done = filepath.VolumeName(target) + string(filepath.Separator)
			target = target[len(filepath.VolumeName(target)):]
		}
		rest = strings.TrimPrefix(target, string(filepath.Separator)) + string(filepath.Separator) + rest
	}
	return slashed(done), nil
}

// absent reports whether an error of Lstat says that there cannot be such a file.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ENAMETOOLONG)
}
