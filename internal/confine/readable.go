package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxEntries limits the directory entries that [Readable] looks at.
const maxEntries = 200_000

// ErrTooMany says that hidden paths would have to be looked for in too many directories.
var ErrTooMany = errors.New("there are too many files among which hidden ones may be")

// Hides says of an absolute path without links whether it is hidden, with all that is below,
// and whether something below may be.
type Hides func(path string) (here, below bool)

// Tree is the file system without hidden paths.
type Tree struct {
	Dirs  []string // nothing in them is hidden
	Files []string // of the directories that have something hidden
}

// Readable looks for what is hidden, and returns everything else, in the order of names. A
// link that is hidden hides what it leads to, unless that contains one of the directories keep.
// The error wraps [ErrTooMany], or [fs.ErrPermission]: what is in a directory that this user
// has closed is not known, and commands could open it again.
func Readable(hides Hides, keep ...string) (Tree, error) { return readable(hides, keep, maxEntries) }

func readable(hides Hides, keep []string, most int) (Tree, error) {
	w := walk{hides: hides, keep: keep, targets: map[string]bool{}}
	for {
		known := len(w.targets)
		w.Tree, w.left = Tree{}, most
		clean := w.dir("/")
		switch {
		case w.unknown != nil:
			return Tree{}, fmt.Errorf("what is hidden is not known: %w", w.unknown)
		case w.left < 0:
			return Tree{}, fmt.Errorf("%w: the search has ended after %d; rules that name the directories need less", ErrTooMany, most)
		case len(w.targets) > known: // they may be among what was found before
			continue
		case clean:
			w.Dirs = []string{"/"}
		}
		return w.Tree, nil
	}
}

type walk struct {
	Tree
	hides   Hides
	keep    []string
	left    int
	targets map[string]bool // to which hidden links lead
	unknown error           // why something that is hidden may not have been found; nil: all was
}

// dir adds a directory without its hidden paths, unless it has no such path.
func (w *walk) dir(path string) (clean bool) {
	here, below := w.at(path)
	if here || !below {
		return !here
	}
	dirs, files := len(w.Dirs), len(w.Files)
	entries, err := os.ReadDir(path)
	if w.left -= 1 + len(entries); w.left < 0 {
		return false
	}
	_, shut := os.Lstat(path + "/.") // its names may be there, and nothing behind them
	if err == nil {
		err = shut
	}
	w.failed(err, path)
	clean = err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(shut, fs.ErrPermission)
	for _, e := range entries {
		at := filepath.Join(path, e.Name())
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			w.link(at)
		case e.IsDir():
			if w.dir(at) {
				w.Dirs = append(w.Dirs, at)
			} else {
				clean = false
			}
		default:
			if hidden, _ := w.at(at); hidden {
				clean = false
			} else {
				w.Files = append(w.Files, at)
			}
		}
	}
	if clean {
		w.Dirs, w.Files = w.Dirs[:dirs], w.Files[:files]
	}
	return clean
}

// failed notes an error if it is because this user has closed the directory: a command could open
// it again.
func (w *walk) failed(err error, dir string) {
	if errors.Is(err, fs.ErrPermission) && isOwn(dir) && w.unknown == nil {
		w.unknown = err
	}
}

// link notes what a hidden link leads to.
func (w *walk) link(path string) {
	if here, _ := w.at(path); !here {
		return
	}
	target, err := filepath.EvalSymlinks(path)
	if at, is := errors.AsType[*fs.PathError](err); is {
		w.failed(err, filepath.Dir(at.Path))
	}
	if err != nil {
		return // nothing is there
	}
	for _, dir := range w.keep {
		if Within(dir, target) {
			return
		}
	}
	w.targets[target] = true
}

// at is what is hidden by the path's name, or by that of a link.
func (w *walk) at(path string) (here, below bool) {
	here, below = w.hides(path)
	for target := range w.targets {
		here, below = here || Within(path, target), below || Within(target, path)
	}
	return here, below
}

// Within reports whether a path is a directory or below it. Both are clean.
func Within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
