package command

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/journal"
)

// maxPlace is how large the file of a workspace may be.
const maxPlace = 256 << 20

// place is where copies or worktrees of a job come from, on any machine.
type place struct {
	Kind fleet.WorkspaceKind `json:"kind"`
	From string              `json:"from,omitempty"` // as in the task; "": the job's
	Rev  string              `json:"rev,omitempty"`
	// Name is a file of the job: a git bundle, or an archive. Without it the commit is at URL.
	Name   string `json:"name,omitempty"`
	URL    string `json:"url,omitempty"`
	Commit string `json:"commit,omitempty"`
	Sub    string `json:"sub,omitempty"` // the directory below the top of the repository, with slashes

	file string // of Name, here
}

// File is a file of a job for [Cluster.Submit].
type File struct{ Name, Path string }

var wholeCommit = regexp.MustCompile(`^[0-9a-f]{40,64}$`)

// pack makes what the workspaces of the job need, below dir. Directories that tasks use as they are stay
// where they are, on the workers.
func (s *settings) pack(ctx context.Context, dir string) (all []place, err error) {
	add := func(p place) {
		for _, o := range all {
			if o.Kind == p.Kind && o.From == p.From && o.Rev == p.Rev {
				return
			}
		}
		all = append(all, p)
	}
	of := s.batch.job.Workspace
	for i := range s.batch.job.Tasks {
		switch w := s.batch.job.Tasks[i].Workspace; {
		case w != nil && w.Kind != "":
			add(place{Kind: w.Kind, From: w.From, Rev: w.Rev})
		case w == nil && of != nil && of.Kind != "":
			add(place{Kind: of.Kind, Rev: of.Rev})
		}
	}
	for i := range all {
		p := &all[i]
		from := cmp.Or(p.From, s.opts.Cwd, ".")
		switch {
		case p.Kind == fleet.WorkspaceWorktree && remote(from):
			err = p.pin(ctx, from)
		case p.Kind == fleet.WorkspaceWorktree:
			err = p.bundle(ctx, from, dir, i)
		default:
			err = p.archive(from, dir, i)
		}
		if err == nil && p.file != "" {
			err = p.name()
		}
		if err != nil {
			return nil, &usageError{problem: fmt.Sprintf("the workspace %s: %v", from, err)}
		}
	}
	return all, nil
}

// remote reports whether a repository is a URL, and no directory.
func remote(from string) bool {
	return strings.Contains(from, "://") || regexp.MustCompile(`^[\w.-]+@[\w.-]+:`).MatchString(from)
}

// pin finds the commit of a repository that each worker clones.
func (p *place) pin(ctx context.Context, from string) error {
	if u, err := url.Parse(from); err == nil && u.User != nil {
		if _, has := u.User.Password(); has || u.Scheme == "https" || u.Scheme == "http" {
			return errors.New("its address has a secret, which would be on the servers' disks: let the workers' git know it, by a credential helper or a key")
		}
	}
	if p.URL, p.Commit = from, p.Rev; wholeCommit.MatchString(p.Rev) {
		return nil
	}
	said, err := git(ctx, ".", "ls-remote", "--", from, cmp.Or(p.Rev, "HEAD"))
	if err != nil {
		return err
	}
	if p.Commit, _, _ = strings.Cut(said, "\t"); !wholeCommit.MatchString(p.Commit) {
		return fmt.Errorf("it has no %s", cmp.Or(p.Rev, "HEAD"))
	}
	return nil
}

// bundle packs a commit of a local repository with its history.
func (p *place) bundle(ctx context.Context, from, dir string, i int) error {
	top, err := git(ctx, from, "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	if p.Sub, err = git(ctx, from, "rev-parse", "--show-prefix"); err != nil {
		return err
	}
	p.Sub = strings.TrimSuffix(p.Sub, "/")
	if p.Commit, err = git(ctx, from, "rev-parse", "--verify", "--end-of-options", cmp.Or(p.Rev, "HEAD")+"^{commit}"); err != nil {
		return err
	}
	// A bundle has branches, and the repository is not to get one.
	bare := filepath.Join(dir, fmt.Sprint(i, ".git"))
	p.file = filepath.Join(dir, fmt.Sprint(i, ".bundle"))
	for _, args := range [][]string{
		{"init", "-q", "--bare", bare},
		{"-C", bare, "fetch", "-q", "--no-tags", "--upload-pack=git -c uploadpack.allowAnySHA1InWant=true upload-pack", top, p.Commit + ":refs/heads/troupe"},
		{"-C", bare, "bundle", "create", "-q", p.file, "troupe"},
	} {
		if _, err := git(ctx, ".", args...); err != nil {
			return err
		}
	}
	return os.RemoveAll(bare)
}

// git runs git, and returns what it prints without the end of the line.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "git", args...)
	c.Dir, c.Env = dir, append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	out, err := c.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && len(exit.Stderr) > 0 {
		err = fmt.Errorf("git %s: %s", args[0], strings.TrimSpace(string(exit.Stderr)))
	}
	return strings.TrimRight(string(out), "\r\n"), err
}

// name gives the file the name of its content.
func (p *place) name() error {
	f, err := os.Open(p.file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	if n > maxPlace {
		return fmt.Errorf("it is %d MB, and may be %d: let the workers clone it from a URL, or use a directory that each of them has", n>>20, maxPlace>>20)
	}
	p.Name = "workspace/" + hex.EncodeToString(sum.Sum(nil))
	return err
}

// archive packs a directory. Directories of jobs, sockets, pipes and devices are left out.
func (p *place) archive(from, dir string, i int) (err error) {
	root, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	p.file = filepath.Join(dir, fmt.Sprint(i, ".tar.gz"))
	f, err := os.OpenFile(p.file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	packed := gzip.NewWriter(&capped{f, maxPlace})
	t := tar.NewWriter(packed)
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed meanwhile
			return nil
		case err != nil || name == ".":
			return err
		case d.IsDir() && ofJob(root, name):
			return fs.SkipDir
		}
		return add(t, root, name)
	})
	return errors.Join(err, t.Close(), packed.Close())
}

// ofJob reports whether a directory is that of a job.
func ofJob(root *os.Root, name string) bool {
	for _, file := range []string{journal.Name, journal.LockName} {
		if st, err := root.Lstat(path.Join(name, file)); err != nil || !st.Mode().IsRegular() {
			return false
		}
	}
	return true
}

// add adds a file, a directory or a link to an archive.
func add(t *tar.Writer, root *os.Root, name string) error {
	st, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	target := ""
	switch st.Mode().Type() {
	case fs.ModeDir, 0:
	case fs.ModeSymlink:
		if target, err = root.Readlink(name); err != nil {
			return err
		}
	default:
		return nil
	}
	h, err := tar.FileInfoHeader(st, target)
	if err != nil {
		return err
	}
	h.Name, h.Uname, h.Gname, h.Uid, h.Gid = filepath.ToSlash(name), "", "", 0, 0
	if err := t.WriteHeader(h); err != nil || st.Mode().Type() != 0 {
		return err
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if _, err = io.CopyN(t, f, h.Size); errors.Is(err, io.EOF) {
		return fmt.Errorf("%s was written meanwhile", name)
	}
	return err
}

// capped is a writer that takes so many bytes.
type capped struct {
	w    io.Writer
	left int64
}

// Write implements [io.Writer].
func (l *capped) Write(b []byte) (int, error) {
	if l.left -= int64(len(b)); l.left < 0 {
		return 0, fmt.Errorf("it is more than %d MB: use a directory that each worker has", maxPlace>>20)
	}
	return l.w.Write(b)
}
