package osproc

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// resolve finds the program. It returns the file to execute and the head of
// argv: the program, and with an interpreter its own arguments and the script.
// e.Searched and e.Path tell of a failure.
func (c *Command) resolve(e *StartError) (path string, argv []string, err error) {
	names := c.Names
	if c.Path != "" {
		names = []string{c.Path}
	}
	if len(c.Interpreter) == 0 {
		path, err = c.find(names, e, canExecute)
		return path, []string{path}, err
	}
	script, err := c.find(names, e, func(string) error { return nil })
	if err != nil {
		return "", nil, err
	}
	e.Path, e.Searched = c.Interpreter[0], nil
	path, err = c.find(c.Interpreter[:1], e, canExecute)
	argv = append([]string{path}, c.Interpreter[1:]...)
	return path, append(argv, script), err
}

// find returns the first of names that is a file and passes usable. As in
// execvp, a file that is there but not usable does not end the search, yet is
// what the error speaks of.
func (c *Command) find(names []string, e *StartError, usable func(string) error) (string, error) {
	var denied error
	try := func(path string) (string, bool) {
		for _, ext := range extensions(c.Env) {
			switch err := checkFile(path+ext, usable); {
			case err == nil:
				return path + ext, true
			case denied == nil && !os.IsNotExist(err):
				denied = err
			}
		}
		return "", false
	}
	dirs := absoluteDirs(lookupEnv(c.Env, "PATH"))
	for _, name := range names {
		if filepath.Base(name) != name {
			if found, ok := try(c.absolute(name)); ok {
				return found, nil
			}
			continue
		}
		if len(dirs) == 0 {
			return "", fmt.Errorf("cannot look up %q: %w", name, ErrEmptyPath)
		}
		e.Searched = dirs
		for _, dir := range dirs {
			if found, ok := try(filepath.Join(dir, name)); ok {
				return found, nil
			}
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", fs.ErrNotExist
}

// absolute resolves a relative program path against the working directory, so
// that the child's chdir does not resolve it a second time.
func (c *Command) absolute(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	abs, err := filepath.Abs(filepath.Join(c.Dir, path))
	if err != nil {
		return path
	}
	return abs
}

func checkFile(path string, usable func(string) error) error {
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	if st.IsDir() {
		return &os.PathError{Op: "exec", Path: path, Err: syscall.EISDIR}
	}
	if err := usable(path); err != nil {
		return &os.PathError{Op: "exec", Path: path, Err: err}
	}
	return nil
}

// absoluteDirs leaves out relative entries of PATH: they would name programs in the
// working directory, which is often an untrusted project.
func absoluteDirs(path string) []string {
	var dirs []string
	for _, dir := range filepath.SplitList(path) {
		if filepath.IsAbs(dir) {
			dirs = append(dirs, filepath.Clean(dir))
		}
	}
	return dirs
}

// lookupEnv returns the value of name in env; the last entry wins.
func lookupEnv(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(env[i], "="); ok && sameVariable(k, name) {
			return v
		}
	}
	return ""
}
