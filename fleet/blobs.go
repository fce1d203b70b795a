package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/agent-troupe/troupe/fleet/journal"
)

// dirStore keeps the files of the job in its directory.
type dirStore struct {
	fs     journal.FS
	keeper *journal.Keeper // nil without a store
	top    string          // a directory with a durable name, of keeper
}

// Put implements [queue.Files]. The keeper syncs the files of several tasks together.
func (d *dirStore) Put(_ context.Context, name string, content io.Reader) error {
	for _, made := range []string{".", path.Dir(name)} {
		if err := d.fs.Mkdir(made); err != nil {
			return err
		}
	}
	return d.keeper.WriteFile(name, d.top, func(w io.Writer) error { _, err := io.Copy(w, content); return err })
}

// Get implements [queue.Files].
func (d *dirStore) Get(_ context.Context, name string) (io.ReadCloser, error) { return d.fs.Read(name) }

// lent is the name of a file in Job.Files. Programs have files with the same names, so the
// fence of the lease is in front.
func lent(fence uint64, name string) string { return path.Join(fmt.Sprint(fence), name) }

// lend puts a file of the job's directory into Job.Files, for the other programs.
func (r *records) lend(ctx context.Context, fence uint64, name string) error {
	if r.others == nil || name == "" {
		return nil
	}
	f, err := r.store.Get(ctx, name)
	if err != nil {
		return err
	}
	return errors.Join(r.others.Put(ctx, lent(fence, name), f), f.Close())
}

// borrow reads a file of another program.
func (r *records) borrow(ctx context.Context, fence uint64, name string) ([]byte, error) {
	if r.others == nil {
		return nil, errors.New("its answer is in a file, and Job.Files is nil")
	}
	f, err := r.others.Get(ctx, lent(fence, name))
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(f)
	return content, errors.Join(err, f.Close())
}

// get opens a file that a result names.
func (r *records) get(ctx context.Context, t *TaskResult, name string) (io.ReadCloser, error) {
	if r.others != nil && t.Worker != "" && t.Worker != r.worker {
		return r.others.Get(ctx, lent(t.Fence, name))
	}
	return r.store.Get(ctx, name)
}
