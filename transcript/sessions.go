package transcript

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/session"

	"github.com/agent-troupe/troupe/base/jsonscan"
)

// Sessions are the sessions of one agent: on this machine, or in a session store. The fields must not change
// while a method runs; methods that only read are safe for concurrent use. Two edits of
// one session at a time are not, and neither is an edit while an agent runs the session,
// except for Rename and Tag, which append one line.
type Sessions struct {
	Vendor Vendor // required
	// Root is the agent's configuration directory, which has projects/; required without
	// Store. See [Root].
	Root string
	// Dir limits everything to the sessions of this directory. It is resolved like the
	// agents do it: symbolic links are followed if the directory exists. Sessions of the
	// other worktrees of its git repository are included, unless SkipWorktrees is set.
	// "": the sessions of all directories.
	Dir           string
	SkipWorktrees bool
	// ProjectName replaces the name of Dir's folder, as CLAUDE_CODE_PROJECT_DIR_NAME does;
	// "": FolderName says it.
	ProjectName string
	// FS is where the reading methods find the files; its root is Root. Its files must be
	// io.ReaderAt. nil: the directory Root. The methods that edit use Root in any case.
	FS fs.FS
	// Store is where the sessions are, instead of in Root: those of Dir, or of the process's
	// working directory if Dir is "". Root, FS and SkipWorktrees do not count then, and the
	// sessions of worktrees are apart. Errors of the store are *[session.StoreError]. nil: the
	// sessions are in Root.
	Store session.Store
	// Now returns the time for Archive and Fork, and for what is appended to Store. nil: the time of the machine.
	Now func() time.Time
	// NewID returns a new UUID for Fork, and for what is appended to Store. nil: a random one of version 4.
	NewID func() string
	// Files is what changes the files of Root, and those that Rewind restores. nil: the machine.
	Files session.Files
}

// NotFoundError says that there is no such session.
type NotFoundError struct {
	ID  string
	Dir string // where it was searched; "": in all directories
	// Store says that it was searched in a session store; an empty Dir is then the
	// process's working directory.
	Store bool
}

func (e *NotFoundError) Error() string {
	if e.Store {
		return fmt.Sprintf("transcript: session %s not found in the session store for %s; only the sessions of that directory are searched there", e.ID, cmp.Or(e.Dir, "the working directory"))
	}
	if e.Dir != "" {
		return fmt.Sprintf("transcript: session %s not found in project directory for %s; without a directory, all are searched", e.ID, e.Dir)
	}
	return fmt.Sprintf("transcript: session %s not found in any project directory", e.ID)
}

// Is makes errors.Is(err, fs.ErrNotExist) true.
func (e *NotFoundError) Is(target error) bool { return target == fs.ErrNotExist }

// IDError says that a text is not a session id. Ids are UUIDs; Qoder's sessions can be
// read under any file name.
type IDError struct {
	ID     string
	Vendor Vendor
}

func (e *IDError) Error() string {
	return fmt.Sprintf("transcript: invalid session id %q: it must be a UUID", e.ID)
}

// Root returns the configuration directory that the vendor's agent uses in an environment,
// and the project name that the environment sets, for Sessions.ProjectName. getenv returns
// the value of a variable, "" if it is not set, such as os.Getenv. root is "" if the
// environment has no home directory.
func Root(v Vendor, getenv func(string) string) (root, projectName string) {
	variable, folder := "CLAUDE_CONFIG_DIR", ".claude"
	if v == Qoder {
		variable, folder = "QODER_CONFIG_DIR", ".qoder"
	}
	if root = getenv(variable); root != "" {
		if name := getenv("CLAUDE_CODE_PROJECT_DIR_NAME"); v == Claude && isProjectName(name) {
			projectName = name
		}
		return root, projectName
	}
	if home := getenv("HOME"); home != "" {
		return filepath.Join(home, folder), ""
	}
	return "", ""
}

// isProjectName reports whether Claude Code accepts the name of a folder.
func isProjectName(name string) bool {
	if name == "" || len(name) > 64 {
		return false
	}
	for _, c := range []byte(name) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	switch n := strings.ToLower(name); {
	case n == "con", n == "prn", n == "aux", n == "nul":
		return false
	case len(n) == 4 && (n[:3] == "com" || n[:3] == "lpt") && n[3] >= '1' && n[3] <= '9':
		return false
	}
	return true
}

// projects is the folder below Root that has the folders of all directories.
const projects = "projects"

func (s *Sessions) fsys() fs.FS {
	if s.FS != nil {
		return s.FS
	}
	return os.DirFS(s.Root)
}

// place is where sessions of one directory are.
type place struct {
	folder string // below Root, with slashes
	dir    string // whose folder it is; "": not known
	own    []string
}

// places returns the folders in which sessions are searched.
func (s *Sessions) places() ([]place, error) {
	if s.Dir == "" {
		entries, err := fs.ReadDir(s.fsys(), projects)
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil, nil
			}
			return nil, fmt.Errorf("transcript: the sessions of %s cannot be listed: %w", s.Root, err)
		}
		var out []place
		for _, e := range entries {
			if e.IsDir() {
				out = append(out, place{folder: path.Join(projects, e.Name())})
			}
		}
		return out, nil
	}
	dir := resolveDir(s.Dir)
	name := s.ProjectName
	if name == "" {
		name = FolderName(s.Vendor, dir)
	}
	out := []place{{folder: path.Join(projects, name), dir: dir}}
	if s.SkipWorktrees || s.ProjectName != "" {
		return out, nil
	}
	trees := worktrees(dir)
	if len(trees) > 1 {
		for _, tree := range trees {
			folder := path.Join(projects, FolderName(s.Vendor, tree))
			if !slices.ContainsFunc(out, func(p place) bool { return p.folder == folder }) {
				out = append(out, place{folder: folder, dir: tree})
			}
		}
	}
	for i := range out {
		out[i].own = trees
	}
	return out, nil
}

// resolveDir returns the directory as the agents name it.
func resolveDir(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if target, err := filepath.EvalSymlinks(dir); err == nil {
		return target
	}
	return dir
}

// checkID reports a text that cannot be a session's id, so that no id leads to a file
// elsewhere.
func (s *Sessions) checkID(id string) error {
	if s.Vendor == Claude && isUUID(id) {
		return nil
	}
	if s.Vendor == Qoder && isFileName(id) {
		return nil
	}
	return &IDError{ID: id, Vendor: s.Vendor}
}

// editable finds the copies of a session that is to be changed. Qoder's SDK reads sessions
// of any name and changes only those with a UUID.
func (s *Sessions) editable(ctx context.Context, id string) ([]found, error) {
	if !isUUID(id) {
		return nil, &IDError{ID: id, Vendor: s.Vendor}
	}
	return s.find(ctx, id, s.Vendor == Qoder)
}

// IsID reports whether s can be the id of a session, which is a UUID.
func IsID(s string) bool { return isUUID(s) }

// isUUID reports whether s has the form of a UUID, in capitals or not.
func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if s[i] != '-' {
				return false
			}
		} else if !jsonscan.IsHex(s[i]) {
			return false
		}
	}
	return true
}

func isFileName(s string) bool {
	return s != "" && s != "." && s != ".." && !strings.ContainsAny(s, "/\\\x00") && len(s) < 200
}

// found is a session's file.
type found struct {
	place
	name string // of the file below Root, with slashes
	info fs.FileInfo
	bare bool // it has no folder with other files
}

// side returns the path, below Root, of a file in the session's own folder.
func (f *found) side(names ...string) string {
	return path.Join(append([]string{strings.TrimSuffix(f.name, ".jsonl")}, names...)...)
}

// find returns the copies of a session, the newest first. empty says whether a file
// without a byte counts.
func (s *Sessions) find(ctx context.Context, id string, empty bool) ([]found, error) {
	if err := s.checkID(id); err != nil {
		return nil, err
	}
	places, err := s.places()
	if err != nil {
		return nil, err
	}
	var out []found
	for _, p := range places {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		name := path.Join(p.folder, id+".jsonl")
		info, err := fs.Stat(s.fsys(), name)
		if err != nil || !info.Mode().IsRegular() || info.Size() == 0 && !empty {
			continue
		}
		out = append(out, found{place: p, name: name, info: info})
	}
	if len(out) == 0 {
		return nil, &NotFoundError{ID: id, Dir: s.Dir}
	}
	slices.SortStableFunc(out, func(a, b found) int { return b.info.ModTime().Compare(a.info.ModTime()) })
	return out, nil
}

// File is an open session file. It must be closed.
type File struct {
	*Transcript
	Path string // below Root, with slashes; "": it is in a store

	s *Sessions
	f io.Closer
}

// Close closes the file; its transcript cannot be used after it.
func (f *File) Close() error { return f.f.Close() }

// Open opens a session and reads its index. Of several copies of the session it opens the
// newest. The error is a *NotFoundError, an *IDError, or the file's.
func (s *Sessions) Open(ctx context.Context, id string) (*File, error) {
	if s.Store != nil {
		f, _, err := s.openStored(ctx, id, "")
		return f, err
	}
	all, err := s.find(ctx, id, true)
	if err != nil {
		return nil, err
	}
	return s.open(all[0].name)
}

func (s *Sessions) open(name string) (*File, error) {
	r, f, size, err := s.openFile(name)
	if err != nil {
		return nil, err
	}
	t, err := Index(r, size, s.Vendor)
	if err != nil {
		closeQuietly(f)
		return nil, fmt.Errorf("transcript: %s cannot be read: %w", name, err)
	}
	return &File{Transcript: t, Path: name, s: s, f: f}, nil
}

// openFile opens a file for reads at any place, and returns its size.
func (s *Sessions) openFile(name string) (io.ReaderAt, fs.File, int64, error) {
	r, f, err := s.openAt(name)
	if err != nil {
		return nil, nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		closeQuietly(f)
		return nil, nil, 0, fmt.Errorf("transcript: %w", err)
	}
	return r, f, info.Size(), nil
}

func (s *Sessions) openAt(name string) (io.ReaderAt, fs.File, error) {
	f, err := s.fsys().Open(name)
	if err != nil {
		return nil, nil, fmt.Errorf("transcript: %w", err)
	}
	r, ok := f.(io.ReaderAt)
	if !ok {
		closeQuietly(f)
		return nil, nil, fmt.Errorf("transcript: %s: the files of Sessions.FS must be io.ReaderAt, %T is not", name, f)
	}
	return r, f, nil
}

// closeQuietly closes a file that was only read.
func closeQuietly(f io.Closer) { _ = f.Close() }
