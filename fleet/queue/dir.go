package queue

import (
	"context"
	"io"
	"path"

	"github.com/agent-troupe/troupe/fleet/journal"
)

// DirFiles returns a [Files] in a directory, which several machines may share.
func DirFiles(dir string) Files { return dirFiles{journal.Dir(dir)} }

type dirFiles struct{ fs journal.FS }

// Put implements [Files].
func (d dirFiles) Put(_ context.Context, name string, content io.Reader) error {
	dir := path.Dir(name)
	for _, made := range []string{".", dir} {
		if err := d.fs.Mkdir(made); err != nil {
			return err
		}
	}
	if err := journal.WriteFile(d.fs, name, func(w io.Writer) error { _, err := io.Copy(w, content); return err }); err != nil {
		return err
	}
	for ; dir != "."; dir = path.Dir(dir) {
		if err := d.fs.SyncDir(path.Dir(dir)); err != nil {
			return err
		}
	}
	return nil
}

// Get implements [Files].
func (d dirFiles) Get(_ context.Context, name string) (io.ReadCloser, error) { return d.fs.Read(name) }
