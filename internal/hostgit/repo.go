package hostgit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// ErrNoRepository is the error of [Find] for a directory that is in no repository.
var ErrNoRepository = errors.New("not a git repository")

// ErrReftable is the error for a repository whose references only git can read.
var ErrReftable = errors.New("the repository keeps its references in reftables, which only git can read: convert them with git refs migrate --ref-format=files, or work in a clone")

// Repo is a repository as its files were when it was found. It has what git needs to know of
// it, and is kept: what an agent writes into the repository later changes nothing here.
type Repo struct {
	Top    string `json:"top"`    // of the working tree; "": the repository is bare
	GitDir string `json:"gitDir"` // of this working tree
	Common string `json:"common"` // shared by all worktrees; the same as GitDir without worktrees
	// Config are the settings that [Dir] takes over.
	Config  []Setting `json:"config,omitempty"`
	Exclude string    `json:"exclude,omitempty"` // info/exclude
	Shallow string    `json:"shallow,omitempty"` // the file of that name
	Sparse  string    `json:"sparse,omitempty"`  // info/sparse-checkout
}

// Find finds the repository that a directory is in, as git does, without running git. Config
// is empty; see [Git.Find].
func Find(dir string) (*Repo, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, err
	}
	for at := dir; ; {
		if gitDir, err := pointed(at); err == nil {
			return opened(at, gitDir)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if _, err := commonOf(at); err == nil || errors.Is(err, ErrReftable) {
			return opened("", at)
		}
		up := filepath.Dir(at)
		if up == at {
			return nil, fmt.Errorf("%s: %w", dir, ErrNoRepository)
		}
		at = up
	}
}

// pointed returns the git directory of a working tree: .git, or what the file .git names.
func pointed(top string) (string, error) {
	name := filepath.Join(top, ".git")
	st, err := os.Stat(name)
	if err != nil {
		return "", err
	}
	if st.IsDir() {
		return name, nil
	}
	text, err := readSmall(name)
	if err != nil {
		return "", err
	}
	to, ok := strings.CutPrefix(text, "gitdir: ")
	if !ok {
		return "", fmt.Errorf("%s does not say where the repository is", name)
	}
	return joined(top, strings.TrimRight(to, "\r\n")), nil
}

func opened(top, gitDir string) (*Repo, error) {
	common, err := commonOf(gitDir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", gitDir, ErrNoRepository, err)
	}
	r := &Repo{Top: top, GitDir: gitDir, Common: common}
	for _, of := range []struct {
		name string
		to   *string
	}{
		{filepath.Join(common, "info", "exclude"), &r.Exclude}, {filepath.Join(common, "shallow"), &r.Shallow},
		{filepath.Join(gitDir, "info", "sparse-checkout"), &r.Sparse},
	} {
		if *of.to, err = readSmall(of.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return r, nil
}

// commonOf returns the directory that all worktrees of a git directory share. It is an error
// if gitDir is not a git directory.
func commonOf(gitDir string) (string, error) {
	if _, err := readSmall(filepath.Join(gitDir, "HEAD")); err != nil {
		return "", err
	}
	common := gitDir
	if text, err := readSmall(filepath.Join(gitDir, "commondir")); err == nil {
		common = joined(gitDir, strings.TrimRight(text, "\r\n"))
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(common, "reftable")); err == nil {
		return "", ErrReftable
	}
	for _, name := range []string{"objects", "refs"} {
		if _, err := os.Stat(filepath.Join(common, name)); err != nil {
			return "", err
		}
	}
	return common, nil
}

func joined(dir, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}

// maxSmall is the longest file of a repository that is read here. References are packed in
// one file, and large repositories have a million of them.
const maxSmall = 256 << 20

// readSmall reads a regular file. An agent may have put a pipe there, or a link to a device.
func readSmall(name string) (string, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !st.Mode().IsRegular() || st.Size() > maxSmall {
		return "", fmt.Errorf("%s is not a regular file, or longer than %d bytes", name, maxSmall)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSmall))
	return string(text), err
}

var (
	hash    = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
	refName = regexp.MustCompile(`^refs/[A-Za-z0-9_][^\x00-\x20\x7f~^:?*\[\\]*$`)
)

// goodRef reports whether a name is one of a reference below refs, and stays there.
func goodRef(name string) bool {
	return refName.MatchString(name) && filepath.IsLocal(filepath.FromSlash(name)) && !strings.Contains(name, "..") &&
		!strings.Contains(name, "//") && !strings.HasSuffix(name, "/") && !strings.HasSuffix(name, ".lock")
}

// Head is where a working tree is: on a branch, or at a commit.
type Head struct {
	Ref  string // "": detached
	Hash string // "": the branch has no commit yet, or only git can read the references
}

// Head reads HEAD as it is now.
func (r *Repo) Head() (Head, error) {
	text, err := readSmall(filepath.Join(r.GitDir, "HEAD"))
	if err != nil {
		return Head{}, err
	}
	text = strings.TrimSpace(text)
	if hash.MatchString(text) {
		return Head{Hash: text}, nil
	}
	ref := strings.TrimSpace(strings.TrimPrefix(text, "ref:"))
	if !strings.HasPrefix(text, "ref:") || !goodRef(ref) {
		return Head{}, fmt.Errorf("%s is not a HEAD of git", filepath.Join(r.GitDir, "HEAD"))
	}
	at, err := r.ref(ref)
	return Head{Ref: ref, Hash: at}, err
}

// ref is the value of a reference in a file, or in the packed ones, or "".
func (r *Repo) ref(name string) (string, error) {
	const most = 5 // as git allows references that name references
	for range most {
		text, err := readSmall(filepath.Join(r.Common, filepath.FromSlash(name)))
		if errors.Is(err, fs.ErrNotExist) {
			packed, err := r.packed()
			return packed[name], err
		}
		if err != nil {
			return "", err
		}
		text = strings.TrimSpace(text)
		if hash.MatchString(text) {
			return text, nil
		}
		if name = strings.TrimSpace(strings.TrimPrefix(text, "ref:")); !goodRef(name) {
			break
		}
	}
	return "", fmt.Errorf("%s is not a reference of git", name)
}

func (r *Repo) packed() (map[string]string, error) {
	text, err := readSmall(filepath.Join(r.Common, "packed-refs"))
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]string{}, nil
	}
	all := map[string]string{}
	for line := range strings.Lines(text) {
		at, name, ok := strings.Cut(strings.TrimSpace(line), " ")
		if ok && hash.MatchString(at) && goodRef(name) {
			all[name] = at
		}
	}
	return all, err
}

// refs are all references with their values. References of a repository with reftables are
// not among them.
func (r *Repo) refs() (map[string]string, error) {
	all, err := r.packed()
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(filepath.Join(r.Common, "refs"), func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(r.Common, name)
		if err != nil || !goodRef(filepath.ToSlash(rel)) {
			return err
		}
		if at, err := r.ref(filepath.ToSlash(rel)); err == nil && at != "" { // a broken one is git's to report
			all[filepath.ToSlash(rel)] = at
		}
		return nil
	})
	return all, err
}

// SameFile reports whether two paths lead to the same file.
func SameFile(a, b string) bool {
	x, err := os.Stat(a)
	y, other := os.Stat(b)
	return err == nil && other == nil && os.SameFile(x, y)
}

// replaceFile writes a file in place of whatever has the name, and never through a link. Its
// mode is that of git's files; a directory of the host's own is closed to others.
func replaceFile(root *os.Root, name, content string) error {
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, bytes.NewReader([]byte(content)))
	return errors.Join(err, f.Close())
}
