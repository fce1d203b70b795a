package confine

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"

	"github.com/agent-troupe/troupe/session"
)

// Env is set in the environment of a program that is to confine itself: the length of the
// rules at the beginning of its standard input.
const Env = "TROUPE_CONFINE"

// Rules are what a command may do with files. Everything else is denied, but for the names in
// directories, which it may list, and what the kernel does not confine: modes, owners, times.
// Paths are absolute. A path that has gone when the command starts grants nothing.
type Rules struct {
	Read  []string `json:"read"`  // directories whose files it may read and execute
	Write []string `json:"write"` // directories in which it may do everything but make devices
	// ReadFiles and WriteFiles are the same for single files. They may not be removed.
	ReadFiles  []string `json:"read_files"`
	WriteFiles []string `json:"write_files"`
	Parent     int      `json:"parent"` // the process whose death ends it
}

// Wrap makes a command that confines itself and then becomes c. Its standard input must begin
// with input. The program must call [Serve] first in main: see [Serves].
func (r Rules) Wrap(c session.Command) (_ session.Command, input []byte) {
	r.Parent = os.Getpid()
	input, _ = json.Marshal(r) // texts
	c.Args = slices.Concat(c.Argv(), c.Args[len(c.Args):])
	c.Path, c.Names, c.Interpreter = self, nil, nil
	c.Env = append(slices.Clip(c.Env), Env+"="+strconv.Itoa(len(input)))
	return c, input
}

// self is this program, also if its file was replaced.
const self = "/proc/self/exe"

// RulesOf are the rules for commands that may read what is in the tree, and write of it what is
// in the directories, or single files, of writable. In a directory that has something hidden
// they can neither make nor remove an entry: otherwise what is hidden could get another name.
func RulesOf(t Tree, writable []string) Rules {
	r := Rules{Read: t.Dirs, ReadFiles: t.Files}
	inside := func(path string, dirs []string) bool {
		return slices.ContainsFunc(dirs, func(dir string) bool { return Within(path, dir) })
	}
	for _, path := range writable {
		info, err := os.Stat(path)
		switch all := inside(path, t.Dirs); {
		case err != nil:
		case !info.IsDir():
			if all || slices.Contains(t.Files, path) {
				r.WriteFiles = append(r.WriteFiles, path)
			}
		case all:
			r.Write = append(r.Write, path)
		default:
			of := func(paths []string) (own []string) {
				for _, p := range paths {
					if Within(p, path) {
						own = append(own, p)
					}
				}
				return own
			}
			r.Write, r.WriteFiles = append(r.Write, of(t.Dirs)...), append(r.WriteFiles, of(t.Files)...)
		}
	}
	return r
}
