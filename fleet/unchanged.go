package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// maxLooked is how many files a look at a workspace may have: beyond that it counts as changed.
const maxLooked = 50_000

var errManyFiles = errors.New("too many files to look at")

// looked is a digest of what a directory has: names, sizes, modes and times of all files, also
// those that git ignores, but for git's own objects. "" if that cannot be said.
func looked(dir string) string {
	sum, n := sha256.New(), 0
	err := filepath.WalkDir(dir, func(at string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && e.Name() == "objects" && filepath.Base(filepath.Dir(at)) == ".git" {
			return fs.SkipDir
		}
		if n++; n > maxLooked {
			return errManyFiles
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		size := info.Size()
		if e.IsDir() {
			size = 0
		}
		_, err = fmt.Fprintf(sum, "%q %d %v %d\n", at, size, info.Mode(), info.ModTime().UnixNano())
		return err
	})
	if err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))
}
