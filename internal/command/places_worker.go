package command

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/queue"
)

// unpack makes the places of a job below dir, and has its tasks use them. A place that is there from an
// earlier start stays as it is.
func (s *settings) unpack(ctx context.Context, places []place, files queue.Files, dir string) error {
	job := &s.batch.job
	for i := range places {
		p := &places[i]
		to := filepath.Join(dir, fmt.Sprint(i))
		if _, err := os.Stat(to); errors.Is(err, fs.ErrNotExist) {
			err = p.fetch(ctx, files, to+".new")
			if err == nil {
				err = os.Rename(to+".new", to)
			}
			if err != nil {
				return fmt.Errorf("the workspace of the job: %w", err)
			}
		}
		use := func(w *fleet.Workspace) {
			w.From = filepath.Join(to, filepath.FromSlash(p.Sub))
			if w.Rev = ""; p.Kind == fleet.WorkspaceWorktree {
				w.Rev = p.Commit
			}
		}
		if w := job.Workspace; w != nil && p.From == "" && w.Kind == p.Kind && w.Rev == p.Rev {
			use(w)
		}
		for k := range job.Tasks {
			if w := job.Tasks[k].Workspace; w != nil && w.Kind == p.Kind && w.From == p.From && w.Rev == p.Rev {
				own := *w
				use(&own)
				job.Tasks[k].Workspace = &own
			}
		}
	}
	return nil
}

// fetch makes a place in the directory to.
func (p *place) fetch(ctx context.Context, files queue.Files, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if p.URL != "" {
		for _, args := range [][]string{
			{"init", "-q", to},
			{"-C", to, "fetch", "-q", "--no-tags", "--", p.URL, p.Commit},
			{"-C", to, "checkout", "-q", "--detach", p.Commit},
		} {
			if _, err := git(ctx, ".", args...); err != nil {
				return err
			}
		}
		return nil
	}
	r, err := files.Get(ctx, p.Name)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	if p.Kind == fleet.WorkspaceCopy {
		return extract(r, to)
	}
	f, err := os.CreateTemp(filepath.Dir(to), "bundle")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	if _, err = io.Copy(f, r); errors.Join(err, f.Close()) != nil {
		return errors.Join(err, errors.New("the bundle cannot be kept"))
	}
	_, err = git(ctx, ".", "clone", "-q", "-b", "troupe", "--", f.Name(), to)
	return err
}

// extract makes a directory of an archive. Nothing is written outside of it.
func extract(r io.Reader, to string) error {
	if err := os.Mkdir(to, 0o777); err != nil { //nolint:gosec // as cp makes it; umask decides
		return err
	}
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	packed, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	t := tar.NewReader(packed)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = extractOne(root, t, h)
		}
		if err != nil {
			return err
		}
	}
}

func extractOne(root *os.Root, t *tar.Reader, h *tar.Header) error {
	name := filepath.FromSlash(h.Name)
	switch h.Typeflag {
	case tar.TypeDir:
		return root.Mkdir(name, 0o700|h.FileInfo().Mode().Perm())
	case tar.TypeSymlink:
		return root.Symlink(h.Linkname, name)
	case tar.TypeReg:
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, h.FileInfo().Mode().Perm())
		if err != nil {
			return err
		}
		_, err = io.Copy(f, t)
		return errors.Join(err, f.Close())
	}
	return fmt.Errorf("%s is no file, directory or link", h.Name)
}
